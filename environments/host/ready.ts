import path from 'node:path';
import { ownModule } from '../../engine/own-module.ts';

/** Environments that come with Gradus and are loaded only where they are named: they need Python packages. */
export const READY: readonly string[] = ['bfcl', 'gymnasium', 'reasoning-gym', 'textarena', 'textworld'];

/** The module of the environments that are always there. The host loads it by its name, as it loads modules of users. */
export const FAMILIES_MODULE = ownModule('../families/index', import.meta.url);

/** The file of an environment module as it is named: a ready one, or a path from the folder. */
export const fileOfModule = (name: string, folder = process.cwd()): string =>
  READY.includes(name)
    ? ownModule(`../connectors/packages/${name}/environment`, import.meta.url)
    : path.resolve(folder, name);
