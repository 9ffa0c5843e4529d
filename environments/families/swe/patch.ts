import { applyPatch, createTwoFilesPatch, parsePatch } from 'diff';
import { GradusError } from '../../../core/errors.ts';
import { ToolRefusal } from '../../contract/environment.ts';
import { foldersOf, hasHalfLetter, isTreePath, withFiles, type Tree } from './tree.ts';

/** Longest patch, characters as JSON: it is the state of a session, which passes from call to call. */
const LONGEST_PATCH = 48_000;

/** More changed lines than that in one file are not looked for: the patch would be too long. */
const MOST_EDITS = 4_000;

const NOTHING = '/dev/null';

/**
 * What turns `base` into `tree`, as a unified diff of three lines of context, files by path. The same for the same trees.
 * Throws ToolRefusal where that is too long, or where no file system has such a tree, or no
 * program can read such a text.
 */
export function patchBetween(base: Tree, tree: Tree): string {
  let patch = '';
  for (const path of [...new Set([...base.keys(), ...tree.keys()])].toSorted()) {
    const [before, after] = [base.get(path), tree.get(path)];
    if (before === after) continue;
    const refuse = (why: string): never => {
      throw new ToolRefusal(`no such change: ${path.slice(0, 100)} ${why}`);
    };
    if (!isTreePath(path)) refuse('is no plain path');
    if (after !== undefined) {
      if (hasHalfLetter(after)) refuse('has half a letter (a lone surrogate)');
      if (foldersOf(path).some((folder) => tree.has(folder))) refuse('lies in a file');
      if ([...tree.keys()].some((other) => other.startsWith(`${path}/`))) refuse('is a folder');
    }
    const hunks = createTwoFilesPatch(
      before === undefined ? NOTHING : `a/${path}`,
      after === undefined ? NOTHING : `b/${path}`,
      before ?? '',
      after ?? '',
      undefined,
      undefined,
      { context: 3, maxEditLength: MOST_EDITS },
    );
    // An empty file has no lines to tell it by.
    patch += hunks?.replace(/^=+\n/u, '') ?? '';
    if (hunks === undefined || JSON.stringify(patch).length > LONGEST_PATCH) {
      throw new ToolRefusal('too large a change, taken back: make smaller ones');
    }
  }
  return patch;
}

/** `base` with a patch of `patchBetween` applied to it. Throws GradusError('environment', 'patch') for any other one. */
export function patched(base: Tree, patch: string): Tree {
  if (patch === '') return base;
  const files = new Map<string, string | null>();
  for (const one of parsePatch(patch)) {
    const [from, to] = [one.oldFileName ?? NOTHING, one.newFileName ?? NOTHING];
    const path = (to === NOTHING ? from : to).replace(/^[ab]\//u, '');
    const before = from === NOTHING ? '' : base.get(path);
    const after =
      before === undefined
        ? false
        : applyPatch(before, one, { fuzzFactor: 0, autoConvertLineEndings: false });
    if (after === false || !isTreePath(path)) {
      throw new GradusError('environment', 'patch', `The patch does not apply to ${path}.`);
    }
    files.set(path, to === NOTHING ? null : after);
  }
  return withFiles(base, files);
}

/** The patch of each file by its path, without the lines that name it. */
export function hunksByPath(patch: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const one of patch.split(/^(?=--- )/mu)) {
    const names = /^--- (?:a\/)?(.*)\n\+\+\+ (?:b\/)?(.*)\n/u.exec(one);
    if (names !== null) found.set(names[2] === NOTHING ? names[1]! : names[2]!, one.slice(names[0].length));
  }
  return found;
}
