import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Ours, in a checkout; of the package all lies in node_modules. */
const OURS = path.resolve(import.meta.dirname, '../..');
const FOLDERS = 'core spec store workflows activities workers engine environments infra cli'.split(' ');

/** ` (environment.ts:31:12)`: the innermost line of an error's stack in the project's own code; empty where there is none. */
export function sourcePlaceOf(error: unknown): string {
  for (const line of stackOf(error).split('\n')) {
    const [, where, at] = /^\s+at (?:.* \()?(?:async )?(.+?)((?::\d+){2})\)?$/.exec(line) ?? [];
    if (where === undefined) continue;
    const file = where.startsWith('file:') ? fileURLToPath(where) : where;
    if (!path.isAbsolute(file) || isForeign(file)) continue;
    return ` (${path.relative(process.cwd(), file.replace(/\?.*$/, ''))}${at})`;
  }
  return '';
}

const isForeign = (file: string): boolean =>
  file.split(path.sep).includes('node_modules') ||
  FOLDERS.some((name) => file.startsWith(path.join(OURS, name) + path.sep));

/** What was thrown may be anything, also what throws when it is looked at. */
function stackOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack) : '';
  } catch {
    return '';
  }
}
