import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Boundary } from '../../core/errors.ts';
import { fileOfModule } from './ready.ts';

/** What is expected of a module, for messages: `an environment`, and where its contract stands. */
interface Expected {
  boundary: Boundary;
  what: string;
  contract: string;
}

/**
 * The default export of a module of a project; its path is relative to the working directory.
 * Throws GradusError(boundary, 'module' | 'shape').
 */
export async function importDefault(path: string, { boundary, what, contract }: Expected): Promise<unknown> {
  let module: { default?: unknown };
  try {
    module = (await import(pathToFileURL(fileOfModule(path)).href)) as { default?: unknown };
  } catch (cause) {
    const why = existsSync(fileOfModule(path)) ? messageOf(cause) : 'there is no such file';
    const [, name] = what.split(/ (.*)/s);
    throw new GradusError(
      boundary,
      'module',
      `Cannot load the ${name} module ${path}: ${why}. Give the path of a module that can be imported.`,
      { cause },
    );
  }
  if (module.default === undefined) {
    throw new GradusError(
      boundary,
      'shape',
      `${path} has no default export; export default ${what} (${contract}).`,
    );
  }
  // TypeScript of a folder that is CommonJS: its exports are what is exported.
  const { default: exported } = module;
  const isCommonJs = typeof exported === 'object' && exported !== null && '__esModule' in exported;
  return isCommonJs && 'default' in exported ? exported.default : exported;
}
