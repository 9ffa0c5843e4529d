import type { Environment } from '../../../contract/environment.ts';
import { pythonEnvironment, pythonVerifier } from '../../python/python-environment.ts';
import { python } from '../../python/python.ts';
import { DATASETS, FEW } from './datasets.ts';

// The data sets of reasoning-gym (PyPI reasoning-gym, Apache-2.0): generated tasks without tools, judged by their own
// score_answer. One environment each, `reasoning-gym-chain-sum` for chain_sum.

const reasoning = python(new URL('./reasoning.py', import.meta.url), {
  requirements: new URL('./requirements.txt', import.meta.url),
});

function reasoningGym(dataset: string, levels: number): Environment {
  const few = FEW[dataset];
  return pythonEnvironment({
    name: `reasoning-gym-${dataset.replaceAll('_', '-')}`,
    version: 'reasoning-gym 0.1.25, tasks 2',
    module: reasoning,
    levels: Array.from({ length: levels }, (_, n) => n + 1),
    about: [dataset, few?.different ?? null],
    taskCount: (split, level) => (level === 1 && few ? few.counts[split] : Infinity),
    // Its answer alone: how one comes to it the package does not say.
    demonstrate: ({ answer }) => ({ weight: 1, turns: [{ answer: answer! }] }),
    verifiers: [pythonVerifier(reasoning, { name: 'score-answer', version: '0.1.25, 2' })],
  });
}

export default Object.entries(DATASETS).map(([dataset, levels]) => reasoningGym(dataset, levels));
