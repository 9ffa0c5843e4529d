/** The text of each file of a source tree by its path, relative to the root, with `/` between. */
export type Tree = ReadonlyMap<string, string>;

/** Letters that a path may have: what every program and patch writes in the same way. */
const PATH = /^[\w@+=~.-]+(?:\/[\w@+=~.-]+)*$/u;

/** Whether a path is one of a tree: relative, plain letters, and not out of it. */
export const isTreePath = (path: string): boolean =>
  PATH.test(path) && path.length <= 200 && !path.split('/').some((part) => part === '..' || part === '.');

/** Whether a text has what UTF-8 has no bytes for: half of a pair of UTF-16. */
export const hasHalfLetter = (text: string): boolean => /\p{Cs}/u.test(text);

/** Whether a path is one of some folders and files, or lies in one. */
export const isBelow = (places: readonly string[], path: string): boolean =>
  places.some((place) => path === place || path.startsWith(`${place}/`));

/** The folders that a path lies in, the outermost first. */
export const foldersOf = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, i, parts) => parts.slice(0, i + 1).join('/'));

/** `tree` with some files put in place of its own; null takes one away. */
export function withFiles(tree: Tree, files: ReadonlyMap<string, string | null>): Tree {
  const changed = new Map(tree);
  for (const [path, text] of files) {
    if (text === null) changed.delete(path);
    else changed.set(path, text);
  }
  return changed;
}
