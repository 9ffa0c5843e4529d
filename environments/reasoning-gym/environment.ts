import type { Environment } from '../contract.ts';
import { pythonEnvironment, pythonVerifier } from '../python/python-environment.ts';
import { python } from '../python/python.ts';
import { DATASETS } from './datasets.ts';

// The data sets of reasoning-gym (PyPI reasoning-gym, Apache-2.0): generated tasks without tools, judged by their own
// score_answer. One environment each, `reasoning-gym-chain-sum` for chain_sum.

const reasoning = python(new URL('./reasoning.py', import.meta.url), {
  requirements: new URL('./requirements.txt', import.meta.url),
});

function reasoningGym(dataset: string, levels: number): Environment {
  return pythonEnvironment({
    name: `reasoning-gym-${dataset.replaceAll('_', '-')}`,
    version: 'reasoning-gym 0.1.25',
    module: reasoning,
    levels: Array.from({ length: levels }, (_, n) => n + 1),
    about: [dataset],
    verifiers: [pythonVerifier(reasoning, { name: 'score-answer', version: '0.1.25' })],
  });
}

export default Object.entries(DATASETS).map(([dataset, levels]) => reasoningGym(dataset, levels));
