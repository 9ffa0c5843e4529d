import { parameterShapes } from '../../lora/adapter-shapes.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { ComputeSettings, Learner, ScoredBatch, ScoreQuery, LearnerScores } from '../contract.ts';
import { criticShapes } from '../critic.ts';
import { valueProgram } from '../programs/critic-programs.ts';
import { uploadFrozen } from './device-state.ts';
import { createMicroBatches, dispose } from '../batch/micro-batches.ts';
import { logprobProgram } from '../programs/policy-programs.ts';
import type { Program } from '../programs/program.ts';
import { refuseNonFinite } from './refuse-non-finite.ts';
import { packing } from '../batch/row-packing.ts';
import type { Runner } from '../tensorflow/runner.ts';
import { maskOf, sequencesOf } from '../batch/sequences.ts';

/** Of arguments that were checked. Throws GradusError('learner', 'diverged') where a number is not finite. */
export async function scoreTokens(
  backend: TensorflowBackend,
  runner: Runner,
  { config, weights, adapter, critic }: Parameters<Learner['score']>[0],
  batch: ScoredBatch,
  { logprobs: from, values }: ScoreQuery,
  compute: ComputeSettings,
): Promise<LearnerScores> {
  const sequences = sequencesOf(batch);
  const mask = maskOf(batch, sequences);
  const packed = packing(backend, config, compute, batch, sequences)(sequences);
  const cut = from && from.topK > 0 && batch.kept ? { sets: batch.kept, most: from.topK } : undefined;
  const run = async (
    program: Program,
    shapes: Parameters<typeof uploadFrozen>[1],
    named: Parameters<typeof uploadFrozen>[2],
    kept: typeof cut,
  ) => {
    const micro = createMicroBatches(backend, runner, batch.tokens.length, kept, () => undefined);
    const tensors = uploadFrozen(backend, shapes, named);
    try {
      const all = await micro.perToken(program, tensors, packed);
      return all.map((value, i) => (mask[i] === 1 ? value : 0));
    } finally {
      dispose(tensors);
    }
  };
  const scores: LearnerScores = {};
  if (from) {
    const model = { config, lora: adapter?.lora, compute };
    const { frozen, trained } = parameterShapes(model);
    const named = new Map([...weights, ...(adapter?.weights ?? [])]);
    const program = logprobProgram(backend, model, { ...from, topK: cut?.most ?? 0 });
    scores.logprobs = await run(program, [...frozen, ...trained], named, cut);
    refuseNonFinite(scores.logprobs, 'the weights that score it');
  }
  if (values) {
    scores.values = critic
      ? await run(valueProgram(backend, { config, compute }), criticShapes(config), critic.weights, undefined)
      : new Float32Array(batch.tokens.length);
    refuseNonFinite(scores.values, 'the critic', 'value');
  }
  return scores;
}
