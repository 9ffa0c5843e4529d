import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';

/** What decides what `npm run setup:swe` makes: how it is done, the pins, and the programs that make and judge bugs. */
const RECIPE = '1';
const INGREDIENTS = [
  'requirements.txt',
  'sdists.txt',
  '../python/mutate.py',
  '../python/guard.py',
  '../python/canaries.py',
  '../python/run_group.py',
];

let folder: string | undefined;

/** Where `npm run setup:swe` leaves packages, pytest and bugs: other ingredients, another folder. */
export function preparedFolder(): string {
  folder ??= cacheEntry(cacheRoot(), { name: 'swe', version: digestOfIngredients() });
  return folder;
}

function digestOfIngredients(): string {
  const hash = createHash('sha256').update(RECIPE);
  for (const name of INGREDIENTS) hash.update(readFileSync(path.join(import.meta.dirname, name)));
  return hash.digest('hex').slice(0, 12);
}
