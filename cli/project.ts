import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError, messageOf } from '../core/errors.ts';
import { IN_CHECKOUT } from '../core/installation.ts';
import type { Environment } from '../environments/contract.ts';
import { fileOfModule } from '../environments/ready.ts';

/**
 * The modules of environments that commands in this folder work with, absolute: those that GRADUS_ENVIRONMENTS names; where
 * it is not set, those of `"gradus": {"environments": ["./environment.ts"]}` in the folder's package.json.
 * Throws GradusError('environment', 'module') for what is no such list.
 */
export async function projectModules(folder = process.cwd()): Promise<string[]> {
  const named = process.env['GRADUS_ENVIRONMENTS'];
  if (named !== undefined) {
    const modules = named.split(',').map((name) => name.trim());
    return modules.filter((name) => name !== '').map((name) => fileOfModule(name, folder));
  }
  const file = path.join(folder, 'package.json');
  if (!existsSync(file)) return [];
  const listed = await listedIn(file);
  return listed.map((name) => fileOfModule(name, folder));
}

/** The same as what workers read it from. */
export async function projectEnvironment(): Promise<Record<string, string>> {
  const modules = await projectModules();
  return modules.length === 0 ? {} : { GRADUS_ENVIRONMENTS: modules.join(',') };
}

async function listedIn(file: string): Promise<string[]> {
  let manifest: { gradus?: { environments?: unknown } };
  try {
    manifest = JSON.parse(await readFile(file, 'utf8')) as typeof manifest;
  } catch (cause) {
    throw new GradusError('environment', 'module', `cannot read ${file}: ${messageOf(cause)}`, { cause });
  }
  const listed = manifest?.gradus?.environments ?? [];
  if (Array.isArray(listed) && listed.every((name) => typeof name === 'string')) return listed;
  throw new GradusError(
    'environment',
    'module',
    `"gradus": {"environments": …} in ${file} is no list of files: write for example ["./environment.ts"]`,
  );
}

/** The built-in environments and those of modules, by name, in this process. Throws what environments/index.ts throws. */
export async function loadEnvironments(modules: readonly string[]): Promise<Map<string, Environment>> {
  const { loadEnvironments: load } = await import('../environments/index.ts');
  // The modules of users are TypeScript. In a checkout this process was started with it; elsewhere what is ours is loaded
  // before, since it looks at each file that comes after it.
  if (!IN_CHECKOUT && modules.length > 0) await import('../typescript.ts');
  return load(modules);
}
