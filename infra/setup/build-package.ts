/**
 * `npm run package`: compiles what a project needs of Gradus to JavaScript and declarations in `dist`, laid out as the
 * sources are, with the files beside them that are no TypeScript. Tests, benches and what is built per machine stay out.
 */
import { cp, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { runCommand, tailOf } from './command.ts';

const root = path.resolve(import.meta.dirname, '..', '..');
const dist = path.join(root, 'dist');

/** Folders that are compiled (tsconfig.build.json has them, too) or read when something runs. */
const FOLDERS =
  'core spec store gateway workflows activities workers engine environments infra svg plugins runs recipes dashboard cli'.split(
    ' ',
  );
/** What is copied as it is though it is TypeScript. */
const TEMPLATE = 'cli/template/';
/** What only a checkout needs. */
const CHECKOUT_ONLY = /^infra\/setup\/(bootstrap|bundle|follow-parent|node-version)\.mjs$/;

async function run(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, args, { cwd: root });
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${tailOf(stdout + stderr, 30)}`);
  return stdout;
}

async function build(): Promise<void> {
  await rm(dist, { recursive: true, force: true });
  const typescript = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  await run(process.execPath, [typescript, '-p', 'tsconfig.build.json']);
  // What git ignores (caches, addons that were built here) belongs to nobody else.
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...FOLDERS, 'examples'];
  const files = (await run('git', args)).split('\0').filter((file) => file !== '');
  for (const file of files) {
    if (/\.tsx?$/.test(file) && !file.startsWith(TEMPLATE)) continue;
    if (CHECKOUT_ONLY.test(file)) continue;
    const target = path.join(dist, file);
    await mkdir(path.dirname(target), { recursive: true });
    await cp(path.join(root, file), target);
  }
}

build().catch((error: unknown) => {
  console.error(messageOf(error));
  process.exitCode = 1;
});
