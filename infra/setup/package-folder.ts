import { createRequire } from 'node:module';
import path from 'node:path';

/** The folder of an npm package that we depend on, wherever npm has put it. */
export const packageFolder = (name: string): string =>
  path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
