import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { IN_CHECKOUT } from '../core/installation.ts';

/** What has Node import TypeScript, for `--import`. */
export const TYPESCRIPT = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/** The arguments of Node that let it start our own modules: compiled ones need nothing. */
export const OWN_LOADER: readonly string[] = IN_CHECKOUT ? ['--import', TYPESCRIPT] : [];

/** The file of one of our own modules, by its name without ending, beside the one whose `import.meta.url` is given. */
export const ownModule = (name: string, from: string): string =>
  fileURLToPath(new URL(`${name}${IN_CHECKOUT ? '.ts' : '.js'}`, from));
