/** Begins a learner step whose one micro-batch takes its time, tells the learner's process, and waits to be killed. */
import { createLearner } from '../../engine/learner/process/remote-learner.ts';
import { freshState, GRPO, inUpdates, randomBatch, settings, TINY } from './engine/tiny.ts';

const config = {
  ...TINY,
  hiddenSize: 512,
  intermediateSize: 2048,
  layers: 6,
  attentionHeads: 8,
  headSize: 64,
};
const learner = await createLearner({ backend: 'cpu' });
const compute = { precision: 'float32' as const, gradientCheckpointing: false, microBatchTokens: 32_768 };
const batch = inUpdates(randomBatch(1500, config), { minibatch: 1500 });
const step = learner.step(freshState(config), batch, settings(GRPO, { compute }));
process.send!(learner.pid!);
await step;
process.send!('done');
