import { readFileSync } from 'node:fs';
import path from 'node:path';
import { IN_CHECKOUT } from '../core/installation.ts';

interface OwnManifest {
  version: string;
  devDependencies: Record<string, string>;
}

/** Gradus's own package.json. */
export function ownManifest(): OwnManifest {
  // Compiled modules lie one folder deeper.
  const root = path.resolve(import.meta.dirname, IN_CHECKOUT ? '..' : '../..');
  return JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as OwnManifest;
}
