import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError, messageOf } from '../core/errors.ts';
import { IN_CHECKOUT } from '../core/installation.ts';
import { OWN_LOADER, ownModule } from '../engine/own-module.ts';

const HERE = import.meta.dirname;
/** All that the workflows' code is made of, beside packages, whose versions package.json gives. */
const SOURCES = ['workflows', 'core'].map((folder) => path.resolve(HERE, '..', folder));
const MANIFEST = path.resolve(HERE, IN_CHECKOUT ? '..' : '../..', 'package.json');
const KEPT = path.resolve(HERE, '..', 'node_modules', '.cache', 'gradus', 'workflows');

/** What the process that makes it says. */
export type Made = { code: string } | { failed: string };

/**
 * The workflows as the one script that Temporal's SDK runs. Making it takes two seconds and 100 MB, which a worker would
 * keep: a process of its own makes it and ends. It is kept, by a digest of what it is made of, for the next start.
 * Throws GradusError('infra', 'worker-start') where it cannot be made.
 */
export async function workflowBundle(folder = KEPT): Promise<string> {
  const file = path.join(folder, `${await digestOfSources()}.js`);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const code = await make();
  try {
    await keep(file, code);
  } catch (error) {
    console.warn(`the workflows' script is made again at the next start: ${messageOf(error)}`);
  }
  return code;
}

async function digestOfSources(): Promise<string> {
  // Where it lies is in it, too: what an error names as its place.
  const hash = createHash('sha256')
    .update(HERE)
    .update(await readFile(MANIFEST));
  for (const folder of SOURCES) {
    const files = (await readdir(folder, { recursive: true })).filter((name) => /\.[cm]?[jt]s$/.test(name));
    for (const name of files.toSorted())
      hash.update(`\0${name}\0`).update(await readFile(path.join(folder, name)));
  }
  return hash.digest('hex');
}

function make(): Promise<string> {
  return new Promise((resolve, reject) => {
    const failed = (why: string): void =>
      reject(new GradusError('infra', 'worker-start', `the workflows' script cannot be made: ${why}`));
    const child = fork(ownModule('make-workflow-bundle', import.meta.url), { execArgv: [...OWN_LOADER] });
    child.on('message', (made: Made) => ('code' in made ? resolve(made.code) : failed(made.failed)));
    child.once('error', (error) => failed(error.message));
    child.once('exit', (code, signal) => failed(`its process ended (${signal ?? `exit ${code}`})`));
  });
}

/** Whole or not at all, and in place of those of other sources. */
async function keep(file: string, code: string): Promise<void> {
  const folder = path.dirname(file);
  await mkdir(folder, { recursive: true });
  const begun = `${file}.${process.pid}`;
  await writeFile(begun, code);
  await rename(begun, file);
  for (const other of await readdir(folder))
    if (other.endsWith('.js') && other !== path.basename(file))
      await rm(path.join(folder, other), { force: true });
}
