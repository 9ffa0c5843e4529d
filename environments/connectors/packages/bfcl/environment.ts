import type { Split } from '../../../../core/refs.ts';
import { pythonEnvironment, pythonExpert } from '../../python/python-environment.ts';
import { python } from '../../python/python.ts';
import { environmentReward } from '../../../verifiers/environment-reward.ts';

// The multi-turn part of the Berkeley Function-Calling Leaderboard (PyPI bfcl-eval, Apache-2.0): file systems, trading,
// travel and five more classes with state, and users who want one thing after the other. The score is BFCL's: 1 where after
// each request states and results are those of its own answer. Level 1 is its category base, 2 miss_param, 3 long_context;
// in miss_func functions appear during an episode, which the tools of a task do not.

const multiTurn = python(new URL('./multi_turn.py', import.meta.url), {
  requirements: new URL('./requirements.txt', import.meta.url),
});

/** Scenarios of 200, the same ones in each level. */
const COUNTS: Readonly<Record<Split, number>> = { train: 159, heldout: 20, test: 20 };

export default pythonEnvironment({
  name: 'bfcl-multi-turn',
  version: 'bfcl-eval 2026.3.23, 3',
  module: multiTurn,
  levels: [1, 2, 3],
  // Each task has its own.
  tools: [],
  // The calls of the data's own answer.
  demonstrate: pythonExpert(multiTurn),
  verifiers: [environmentReward({ name: 'state-check' })],
  taskCount: (split) => COUNTS[split],
});
