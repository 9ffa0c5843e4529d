// Where a training step spends its time, by TensorFlow op: npx tsx bench/learner-profile.ts [small|medium] [float32|bfloat16]
// Ops are timed one by one, as the eager runner runs them; the traced graph runs the same ops, some of them side by side.
import type { Tensor } from '@tensorflow/tfjs';
import { MODEL_DEFAULTS } from '../core/schema/model.ts';
import { loadTensorflowBackend } from '../engine/learner/tensorflow/backend.ts';
import { uploadWeights } from '../engine/learner/step/device-state.ts';
import { createTracedRunner } from '../engine/learner/tensorflow/graph/traced-runner.ts';
import { initialWeights } from '../engine/learner/initial-weights.ts';
import type { NativeOpsBinding } from '../engine/learner/tensorflow/native-ops.ts';
import { supervised } from '../engine/learner/losses/supervised.ts';
import { trainingProgram } from '../engine/learner/programs/policy-programs.ts';
import type { Precision } from '../engine/learner/tensorflow/runner.ts';
import { parameterCount, type ModelConfig } from '../core/model/config.ts';

const small: ModelConfig = {
  ...MODEL_DEFAULTS,
  maxPositions: 256,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: false,
};
const medium: ModelConfig = {
  ...small,
  vocabSize: 8192,
  hiddenSize: 512,
  intermediateSize: 1408,
  layers: 8,
  attentionHeads: 8,
  keyValueHeads: 4,
  headSize: 64,
};
const WARM_UP = 2;
const RUNS = 8;

const isMedium = process.argv[2] === 'medium';
const precision: Precision = process.argv[3] === 'bfloat16' ? 'bfloat16' : 'float32';
const config = isMedium ? medium : small;
const [rows, length] = isMedium ? [8, 256] : [32, 128];
const positions = rows * length;

const backend = await loadTensorflowBackend('cpu');
const { tf, native } = backend;
if (!native) throw new Error('only libtensorflow is profiled');
const tokens = Int32Array.from({ length: positions }, (_, i) => (i * 7919) % config.vocabSize);
const inputs: Tensor[] = [
  ...uploadWeights(backend, config, initialWeights(config, 1)),
  tf.tensor1d(tokens, 'int32'),
  tf.tensor1d(tokens.toReversed(), 'int32'),
  tf.zeros([rows, length], 'int32'),
  tf.ones([positions]),
  tf.div(tf.ones([positions]), positions),
];
const compute = { precision, gradientCheckpointing: false };
const program = trainingProgram(backend, { config, compute }, supervised, true);
console.log(`${backend.name}, ${parameterCount(config)} parameters, [${rows} × ${length}]`);

const times = new Map<string, { ms: number; calls: number }>();
const { binding } = native.kernels;
native.kernels.binding = Object.create(binding, {
  executeOp: {
    value: ((name, ...args) => {
      const start = performance.now();
      const outputs = binding.executeOp(name, ...args);
      const entry = times.get(name) ?? { ms: 0, calls: 0 };
      times.set(name, { ms: entry.ms + performance.now() - start, calls: entry.calls + 1 });
      return outputs;
    }) satisfies NativeOpsBinding['executeOp'],
  },
}) as NativeOpsBinding;
for (let run = 0; run <= WARM_UP; run++) {
  times.clear();
  const outputs = tf.tidy(() => program.compute(inputs));
  for (const tensor of outputs) tensor.dispose();
}
native.kernels.binding = binding;
const total = [...times.values()].reduce((sum, { ms }) => sum + ms, 0);
for (const [name, { ms, calls }] of [...times].toSorted((a, b) => b[1].ms - a[1].ms)) {
  if (ms < 0.005 * total) break;
  console.log(
    `${((100 * ms) / total).toFixed(1).padStart(5)} %  ${ms.toFixed(1).padStart(7)} ms  ${calls} × ${name}`,
  );
}

const runner = createTracedRunner(tf, native);
const run = await runner.prepare(program, inputs);
const walls: number[] = [];
const processor = process.cpuUsage();
for (let i = 0; i < WARM_UP + RUNS; i++) {
  const start = performance.now();
  const outputs = tf.tidy(() => run(inputs));
  outputs[0]!.dataSync();
  for (const tensor of outputs) tensor.dispose();
  walls.push(performance.now() - start);
}
const { user, system } = process.cpuUsage(processor);
const fastest = Math.min(...walls.slice(WARM_UP));
console.log(
  `traced, ${precision}: fastest of ${RUNS} ${fastest.toFixed(1)} ms, ${Math.round((1000 * positions) / fastest)} tokens/s; ` +
    `processor time ${((user + system) / 1000 / walls.length).toFixed(1)} ms each`,
);
runner.close();
