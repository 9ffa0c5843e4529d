import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError, messageOf } from '../core/errors.ts';
import { IN_CHECKOUT } from '../core/installation.ts';
import type { Environment } from '../environments/contract/environment.ts';
import { fileOfModule } from '../environments/host/ready.ts';

/** Modules of environments, absolute, and where a person has named them. */
export interface NamedModules {
  files: string[];
  where: string;
}

/**
 * The modules of environments that commands in this folder work with: those that GRADUS_ENVIRONMENTS names; where it is not
 * set, those of `"gradus": {"environments": ["./environment.ts"]}` in the folder's package.json.
 * Throws GradusError('environment', 'module') for what is no such list.
 */
export const projectModules = (folder = process.cwd()): Promise<NamedModules> =>
  namedModules('environments', folder);

/** Likewise those of what else a project brings: GRADUS_EXTENSIONS, or `"gradus": {"extensions": [...]}`. */
export const projectExtensions = (folder = process.cwd()): Promise<NamedModules> =>
  namedModules('extensions', folder);

/** Those of package.json alone. */
export async function packageModules(
  folder = process.cwd(),
  field: keyof typeof VARIABLES = 'environments',
): Promise<NamedModules> {
  const file = path.join(folder, 'package.json');
  const listed = existsSync(file) ? await listedIn(file, field) : [];
  const where = `"gradus": {"${field}": …} in ${file}`;
  return { files: listed.map((name) => fileOfModule(name, folder)), where };
}

const VARIABLES = { environments: 'GRADUS_ENVIRONMENTS', extensions: 'GRADUS_EXTENSIONS' } as const;

async function namedModules(field: keyof typeof VARIABLES, folder: string): Promise<NamedModules> {
  const named = process.env[VARIABLES[field]];
  if (named === undefined) return packageModules(folder, field);
  const names = named.split(',').map((name) => name.trim());
  const files = names.filter((name) => name !== '').map((name) => fileOfModule(name, folder));
  return { files, where: `${VARIABLES[field]}, which takes precedence over package.json` };
}

/** What a module cannot be loaded for, with the place where its name is to be mended. */
export function namingPlace(error: unknown, { files, where }: NamedModules): unknown {
  if (!(error instanceof GradusError) || error.boundary !== 'environment' || files.length === 0) return error;
  return new GradusError(error.boundary, error.type, `${error.message} Modules are named in ${where}.`, {
    cause: error,
  });
}

/** The same as what workers read it from. */
export async function projectEnvironment(): Promise<Record<string, string>> {
  const [environments, extensions] = await Promise.all([projectModules(), projectExtensions()]);
  return {
    ...(environments.files.length > 0 && { GRADUS_ENVIRONMENTS: environments.files.join(',') }),
    ...(extensions.files.length > 0 && { GRADUS_EXTENSIONS: extensions.files.join(',') }),
  };
}

async function listedIn(file: string, field: keyof typeof VARIABLES): Promise<string[]> {
  let manifest: { gradus?: Partial<Record<keyof typeof VARIABLES, unknown>> };
  try {
    manifest = JSON.parse(await readFile(file, 'utf8')) as typeof manifest;
  } catch (cause) {
    throw new GradusError('environment', 'module', `cannot read ${file}: ${messageOf(cause)}`, { cause });
  }
  const listed = manifest?.gradus?.[field] ?? [];
  if (Array.isArray(listed) && listed.every((name) => typeof name === 'string')) return listed;
  throw new GradusError(
    'environment',
    'module',
    `"gradus": {"${field}": …} in ${file} is no list of files: write for example ["./FILE.ts"]`,
  );
}

/** The built-in environments and those of the project, by name, in this process. Throws what environments/families/index.ts throws. */
export async function loadProjectEnvironments(modules: NamedModules): Promise<Map<string, Environment>> {
  const { loadEnvironments: load } = await import('../environments/families/index.ts');
  // The modules of users are TypeScript. In a checkout this process was started with it; elsewhere what is ours is loaded
  // before, since it looks at each file that comes after it.
  if (!IN_CHECKOUT && modules.files.length > 0) await import('../typescript.ts');
  try {
    return await load(modules.files);
  } catch (error) {
    throw namingPlace(error, modules);
  }
}
