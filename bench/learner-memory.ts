// Peak memory of learner steps, each setting in a process of its own:
// npx tsx bench/learner-memory.ts [ROW LENGTH, 1024] [recompute] [bfloat16] [MICRO-BATCH TOKENS]
import { readFileSync, writeFileSync } from 'node:fs';
import type { TrainSettings, TrainState } from '../engine/learner/contract.ts';
import { initialWeights } from '../engine/learner/initial-weights.ts';
import { createLocalLearner } from '../engine/learner/local-learner.ts';
import { parameterCount, type ModelConfig } from '../core/model/config.ts';
import { ADAM } from './adam.ts';

const flags = process.argv.slice(2);
const [length = 1024, microBatchTokens = 0] = flags.map(Number).filter((value) => value > 0);
const POSITIONS = 2048;
const config: ModelConfig = {
  vocabSize: 2048,
  hiddenSize: 512,
  intermediateSize: 1408,
  layers: 8,
  attentionHeads: 8,
  keyValueHeads: 4,
  headSize: 64,
  maxPositions: length + 1,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: false,
};
const rows = POSITIONS / length;
const total = rows * (length + 1);
const isFirst = (i: number) => i % (length + 1) === 0;
const batch = {
  tokens: Int32Array.from({ length: total }, (_, i) => (i * 7919) % config.vocabSize),
  offsets: Int32Array.from({ length: rows + 1 }, (_, i) => i * (length + 1)),
  mask: Float32Array.from({ length: total }, (_, i) => (isFirst(i) ? 0 : 1)),
  streams: { advantages: new Float32Array(total).fill(1) },
  sequences: {},
  updates: [Int32Array.from({ length: rows }, (_, i) => i)],
};
const settings: TrainSettings = {
  objective: { kind: 'supervised' },
  optimizer: ADAM,
  compute: {
    precision: flags.includes('bfloat16') ? 'bfloat16' : 'float32',
    gradientCheckpointing: flags.includes('recompute'),
    microBatchTokens,
  },
};
const learner = await createLocalLearner({ backend: 'cpu' });
console.log(
  `${learner.backend}, ${parameterCount(config)} parameters, [${rows} × ${length}]`,
  settings.compute,
);
let state: TrainState = {
  config,
  weights: initialWeights(config, 1),
  firstMoments: new Map(),
  secondMoments: new Map(),
  updates: 0,
};
for (let step = 1; step <= 4; step++) {
  // Linux forgets the peak so far. The first step traces.
  writeFileSync('/proc/self/clear_refs', '5');
  const start = performance.now();
  ({ state } = await learner.step(state, batch, settings));
  const seconds = (performance.now() - start) / 1000;
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]);
  console.log(`step ${step}: ${seconds.toFixed(2)} s, peak ${(peak / 1024).toFixed(0)} MiB`);
}
await learner.close();
