import { appendFileSync, readFileSync } from 'node:fs';
import type { Environment } from '../../environments/contract/environment.ts';
import { exactMatch } from '../../environments/verifiers/exact-match.ts';

// Environments of one module, of which one never gives its task and one ends the process. Where LOADS names a file, each
// load of the module leaves a line there, and the third one fails.

const loads = process.env['LOADS'];
if (loads !== undefined) {
  appendFileSync(loads, 'load\n');
  if (readFileSync(loads, 'utf8').length > 2 * 'load\n'.length) throw new Error('loaded too often');
}

const repeats: Environment = {
  name: 'repeats',
  levels: [1],
  tools: [],
  verifiers: [exactMatch()],
  task: (ref) => ({ ref, prompt: `Repeat ${ref.split} ${ref.index}.`, answer: `${ref.split} ${ref.index}` }),
  demonstrate: ({ answer }) => ({ turns: [{ answer: answer! }], weight: 1 }),
  taskCount: () => 50,
};

export default [
  { ...repeats, name: 'waits-for-ever', task: () => new Promise(() => undefined) },
  repeats,
  { ...repeats, name: 'exits', task: () => process.exit(7) },
  { ...repeats, name: 'repeats-too' },
] satisfies Environment[];
