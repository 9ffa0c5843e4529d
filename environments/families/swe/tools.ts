import { z } from 'zod';
import { sessionTool, ToolRefusal, type Tool } from '../../contract/environment.ts';
import type { Link } from '../../sandbox/contract.ts';
import { runTests, type TestRun } from './judge.ts';
import { pythonProgram, runPython } from './sandboxed-python.ts';
import { noInstalledPackages, testSite } from './packages/prepared.ts';
import { hasHalfLetter, isTreePath, withFiles, type Tree } from './tree.ts';

/** What a call of a tool made of a tree: the tree after it, and what the policy reads. */
interface Done {
  tree: Tree;
  text: string;
}

/** What tools know of where a tree is from. */
export type CheckedOutBug = TestRun['bug'] & { links?: readonly Link[] };

/** A tool on a tree: a function of tree and arguments, so a call that was cut off can be made again anywhere. */
interface TreeTool<Arguments extends z.ZodType = z.ZodType> {
  tool: Tool;
  act(place: CheckedOutBug, tree: Tree, args: z.output<Arguments>, signal: AbortSignal): Done | Promise<Done>;
}

function treeTool<Arguments extends z.ZodType>(
  tool: Pick<Tool, 'name' | 'description' | 'limits'> & { arguments: Arguments },
  act: TreeTool<Arguments>['act'],
): TreeTool<Arguments> {
  return { tool: sessionTool(tool), act };
}

/** Lines that `view` shows at once, and places that `search` names. */
const MOST_LINES = 200;
const MOST_PLACES = 40;
/** Seconds that a command may take. */
const COMMAND_SECONDS = 20;
/** Around it: for the tree to be laid out, and for a look at what has changed in it, on a machine that is busy. */
const SPARE_SECONDS = 25;
/**
 * What a call runs ends by the limits of its sandbox, within three minutes. A call's own limit is beyond those of all that a
 * process may have at a time (64), one after the other: to be behind others is no fault of its own.
 */
const limits = { timeoutSeconds: 4 * 3600, maxOutputCharacters: 8_000 };

const pathArgument = z.string().describe('Path of a file, relative to the root, like src/app.py');

const textOf = (tree: Tree, path: string): string => {
  const text = tree.get(path);
  if (text === undefined) throw new ToolRefusal(`there is no file ${path.slice(0, 100)}`);
  return text;
};

const view = treeTool(
  {
    name: 'view',
    description: `Shows a file, at most ${MOST_LINES} lines of it, or what is in a folder ("." is the root).`,
    arguments: z.strictObject({
      path: pathArgument,
      from: z.int().min(1).describe('First line to show, 1 unless given').optional(),
    }),
    limits: { maxOutputCharacters: limits.maxOutputCharacters },
  },
  (_, tree, { path, from = 1 }) => {
    const inside = namesIn(tree, path);
    if (inside.length > 0) return { tree, text: inside.join('\n') };
    const lines = textOf(tree, path).replace(/\n$/u, '').split('\n');
    const shown = lines.slice(from - 1, from - 1 + MOST_LINES);
    if (shown.length === 0) throw new ToolRefusal(`${path} has ${lines.length} lines`);
    const last = from - 1 + shown.length;
    const more = last < lines.length ? `\n[lines ${from} to ${last} of ${lines.length}]` : '';
    return { tree, text: shown.join('\n') + more };
  },
);

/** Files and folders of a folder, folders with a slash behind. */
function namesIn(tree: Tree, folder: string): string[] {
  const prefix = folder === '.' || folder === '' ? '' : `${folder.replace(/\/+$/u, '')}/`;
  const names = [...tree.keys()]
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length).replace(/\/.*$/u, '/'));
  return [...new Set(names)].toSorted();
}

const edit = treeTool(
  {
    name: 'edit',
    description:
      'Replaces a text in a file by another. The old text must stand in it once; with an empty old text a new file is written.',
    arguments: z.strictObject({ path: pathArgument, old: z.string(), new: z.string() }),
  },
  (_, tree, { path, old, new: text }) => {
    if (!isTreePath(path)) throw new ToolRefusal('that is no path that a file can have here');
    if (old === '') {
      if (tree.has(path)) throw new ToolRefusal(`${path} is there: say which text is to be replaced`);
      if (namesIn(tree, path).length > 0) throw new ToolRefusal(`${path} is a folder`);
      return { tree: withFiles(tree, new Map([[path, text]])), text: 'written' };
    }
    const parts = textOf(tree, path).split(old);
    if (parts.length === 1) throw new ToolRefusal('the old text is not in the file');
    if (parts.length > 2)
      throw new ToolRefusal(`the old text is in the file ${parts.length - 1} times: take more of it`);
    if (old === text) throw new ToolRefusal('both texts are the same');
    return { tree: withFiles(tree, new Map([[path, parts.join(text)]])), text: 'edited' };
  },
);

const search = treeTool(
  {
    name: 'search',
    description: 'Finds a text, letter by letter, in all files: path, number of the line and the line.',
    arguments: z.strictObject({ text: z.string().min(1) }),
    limits: { maxOutputCharacters: limits.maxOutputCharacters },
  },
  (_, tree, { text: wanted }) => {
    const places: string[] = [];
    for (const [path, text] of [...tree].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      for (const [n, line] of text.split('\n').entries()) {
        if (line.includes(wanted)) places.push(`${path}:${n + 1}: ${line.trim().slice(0, 200)}`);
      }
    }
    if (places.length === 0) return { tree, text: 'nothing found' };
    const more = places.length > MOST_PLACES ? `\n[${places.length - MOST_PLACES} more]` : '';
    return { tree, text: places.slice(0, MOST_PLACES).join('\n') + more };
  },
);

/** What python/shell.py says. */
const ranSchema = z.object({
  code: z.int().nullable(),
  output: z.string(),
  bytes: z.int(),
  changed: z.record(z.string(), z.string().nullable()),
});

const bash = treeTool(
  {
    name: 'bash',
    description: `Runs a command in the root of the tree, for at most ${COMMAND_SECONDS} s. There is no network; nothing lasts but text files.`,
    arguments: z.strictObject({ command: z.string().min(1).max(8_000) }),
    limits,
  },
  async (place, tree, { command }, signal) => {
    if (command.includes('\0') || hasHalfLetter(command))
      throw new ToolRefusal('a command has neither NUL nor half a letter (a lone surrogate)');
    const site = place.style === 'pytest' ? [testSite(), ...noInstalledPackages()] : [];
    const { answer, ended } = await runPython({
      program: pythonProgram('shell'),
      request: {
        tree: Object.fromEntries(tree),
        command,
        seconds: COMMAND_SECONDS,
        source_roots: place.sourceRoots,
        site: site.slice(0, 1).map(({ at }) => at),
      },
      mounts: site,
      links: place.links ?? [],
      limits: { wallSeconds: COMMAND_SECONDS + SPARE_SECONDS, cpuSeconds: COMMAND_SECONDS },
      signal,
    });
    const ran = ranSchema.safeParse(answer);
    if (!ran.success) {
      // A command can end the shell, speak in its place, or change more than can be brought back.
      const how = ended === 'exit' ? 'no word of it came back' : `it was ended by a limit, ${ended}`;
      throw new ToolRefusal(`what the command changed is lost: ${how}`);
    }
    const { code, output, bytes, changed } = ran.data;
    const files = new Map(Object.entries(changed).filter(([path]) => isTreePath(path)));
    const cut = bytes > Buffer.byteLength(output) ? `\n[${bytes} bytes in all]` : '';
    const left =
      code === null ? `\n[ended after ${COMMAND_SECONDS} s]` : code === 0 ? '' : `\n[exit ${code}]`;
    return { tree: withFiles(tree, files), text: (output.trimEnd() + cut + left).trim() || 'done' };
  },
);

const run_tests = treeTool(
  {
    name: 'run_tests',
    description: 'Runs the tests, all of them or those of one file, and says which fail and why.',
    arguments: z.strictObject({ path: pathArgument.optional() }),
    limits,
  },
  async (place, tree, { path }, signal) => {
    if (path !== undefined && !place.testFiles.includes(path)) {
      throw new ToolRefusal(
        `no file of tests: ${path.slice(0, 100)}; there are ${place.testFiles.join(', ')}`,
      );
    }
    const testFiles = path === undefined ? place.testFiles : [path];
    const report = await runTests({ bug: { ...place, testFiles }, tree, tests: null, canaries: [], signal });
    if (!('whole' in report)) throw new ToolRefusal('the tests came to no end');
    const all = Object.entries(report.tests);
    const failed = all.filter(([, [outcome]]) => outcome === 'failed');
    const lines = failed.slice(0, 20).map(([test, [, why]]) => `${test}: ${why.split('\n')[0]}`);
    const passed = all.filter(([, [outcome]]) => outcome === 'passed').length;
    const broken = report.whole ? [] : ['some files of tests did not come to their end'];
    return { tree, text: [...lines, ...broken, `${failed.length} failed, ${passed} passed`].join('\n') };
  },
);

const treeTools = { view, edit, search, bash, run_tests } as const;
export type TreeToolName = keyof typeof treeTools;

/** Tools by their names; calls of those that are `long` are activities of their own. */
export const toolsOf = (names: readonly TreeToolName[], long: readonly TreeToolName[] = []): TreeTool[] =>
  names.map((name) => {
    const one: TreeTool = treeTools[name];
    return { ...one, tool: { ...one.tool, placement: long.includes(name) ? 'long' : 'inline' } };
  });
