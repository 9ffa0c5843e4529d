/**
 * tfjs-node 4.22 calls two functions that Node 23 removed from `util`. The process that is to load it imports this
 * file first, before anything that imports tfjs-node.
 */
import util from 'node:util';

const removed = {
  isArray: (value: unknown) => Array.isArray(value),
  isNullOrUndefined: (value: unknown) => value === null || value === undefined,
};
for (const [name, polyfill] of Object.entries(removed)) {
  if (!(name in util)) Object.defineProperty(util, name, { value: polyfill, configurable: true });
}
