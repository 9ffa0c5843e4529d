/**
 * Types of failures of the store that a person can mend from outside: when the object is put back as it was, what failed
 * works. `missing-object` is one of them: what was deleted may be in a copy of the store.
 */
export const DAMAGE: ReadonlySet<string> = new Set([
  'corrupt-object',
  'invalid-manifest',
  'invalid-object',
  'missing-object',
  'no-verdict',
]);
