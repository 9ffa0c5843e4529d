import path from 'node:path';
import type { Json } from '../../core/json/json.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import { benchRowsOf, interleavedRuns } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import { Child, withChildren } from '../child.ts';
import type { ChildAnswer } from '../child.ts';
import { agree, benchPrompt, TOP_P } from '../engine/speed.ts';
import { anchor, compareEngines, ourEngine, THREADS } from '../engine/engines.ts';
import { withTemporaryFolder } from '../installations.ts';
import { ADAM, GRPO } from '../specs.ts';
import { writeModel } from './model.ts';
import { LEARNER, LORA } from './spec.ts';

const BENCH = 'half-billion:peers';
const RUNS = 3;
/** A step of it may take minutes where other work shares the cores. */
const LIMIT_MS = 1_800_000;
const SAMPLES = 4;
const PROMPT =
  'What a model of random weights makes of this nobody can tell, but all sides read as many words.';
const VOCABULARY = 151_000;

/**
 * The same work of a model of Qwen2.5-0.5B's shape with random weights and LoRA: decoding beside llama.cpp and Hugging Face's
 * `generate`, and whole GRPO steps and their parts, of a group of four with 64 new tokens, beside TRL with PEFT. Ours draws
 * rollouts in float32 and in bfloat16, TRL in what it learns in. The PyTorch learner of Gradus makes the updates alone.
 * `quick` has a model of some thousand weights.
 */
export const halfBillionPeersBench: Bench = async function* (options) {
  yield* await withTemporaryFolder(async (scratch) => {
    const folder = path.join(scratch, 'model');
    await writeModel(folder, options);
    const sizes = options.quick
      ? { decoded: 8, newTokens: 8, vocabulary: 20 }
      : { decoded: 32, newTokens: 64, vocabulary: VOCABULARY };
    const runs = options.runs ?? (options.quick ? 1 : RUNS);
    const decoded = await decoding(folder, sizes, { ...options, runs });
    return [...decoded, ...(await stepping(folder, sizes, { ...options, runs }))];
  });
};

interface Sizes {
  /** New tokens of each sequence, in decoding alone and in steps. */
  decoded: number;
  newTokens: number;
  vocabulary: number;
}
type Options = BenchOptions & { runs: number };

/** The decoders of one dtype are in memory at once. In bfloat16 each rounds in other places, so that they need not agree. */
async function decoding(folder: string, sizes: Sizes, options: Options): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const dtype of ['float32', 'bfloat16'] as const) {
    rows.push(...(await decodingIn(dtype, folder, sizes, options)));
  }
  return rows;
}

const decodingIn = (
  dtype: RolloutDtype,
  folder: string,
  { decoded, vocabulary }: Sizes,
  options: Options,
): Promise<BenchRow[]> =>
  withChildren(async (keep) => {
    const open = async (child: Child, op = 'load', more: Asked = {}): Promise<Child> => {
      await keep(child).call(op, { folder, threads: THREADS, ...more }, LIMIT_MS);
      return child;
    };
    const ours = await open(ourEngine(), 'loadDecoder', { dtype });
    const generate = await anchor('hf_generate', options.say, { avx512: true });
    const anchors: Record<string, Child> = {
      'HF generate, AVX-512': await open(generate, 'load', { dtype }),
    };
    if (dtype === 'float32') {
      anchors['llama.cpp'] = await open(await anchor('llama_cpp_decode', options.say));
      await agree({ ours, ...anchors }, benchPrompt('agree', 0, 16, vocabulary));
    }
    const rows: BenchRow[] = [];
    for (const batch of [1, 8]) {
      const prompts = Array.from({ length: batch }, (_, i) => benchPrompt('decode', i, 32, vocabulary));
      const name = `${dtype}, decoding, batch ${batch}, 32 + ${decoded} tokens, top-p ${TOP_P}`;
      const work = ['decode', { prompts, new_tokens: decoded, top_p: TOP_P }] as const;
      const what = { bench: BENCH, name, amount: batch * decoded };
      rows.push(...(await compareEngines(what, work, ours, anchors, options)));
    }
    return rows;
  });

/** One side after the other, for all at once have no room; what each has held at its peak is in the rows. */
async function stepping(folder: string, sizes: Sizes, options: Options): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const precision of ['float32', 'bfloat16'] as const) {
    const compute = { gradientCheckpointing, microBatchTokens, precision };
    const side = (name: string, open: () => Promise<Child>, load: Asked, op: string, work: Asked) =>
      withChildren(async (keep) => {
        const child = keep(await open());
        const loaded = await child.call('load', { folder, threads: THREADS, lora, ...load }, LIMIT_MS);
        const { it } = await interleavedRuns(
          name,
          { it: () => child.call(op, work, LIMIT_MS) },
          shown,
          options,
        );
        return { loaded, steps: it };
      });
    const { newTokens } = sizes;
    const shape = { samples: SAMPLES, newTokens };
    const trl = await side(
      'TRL with PEFT',
      () => anchor('trl_peft', options.say, { avx512: true }),
      { precision, samples: SAMPLES, new_tokens: newTokens, prompt: PROMPT },
      'step',
      {},
    );
    const prompt = benchPrompt('prompt', 0, trl.loaded['promptTokens'] as number, sizes.vocabulary);
    const torch = await side(
      'our PyTorch learner',
      () => anchor('torch_worker', options.say, { avx512: true }),
      { compute },
      'learn',
      {
        rows: Array.from({ length: SAMPLES }, (_, i) => [
          ...prompt,
          ...benchPrompt('sampled', i, newTokens, sizes.vocabulary),
        ]),
        prompt_tokens: prompt.length,
        objective: { ...GRPO } as Asked,
        optimizer: { ...ADAM },
      },
    );
    const compared = (
      name: string,
      one: ChildAnswer[],
      part: (answer: ChildAnswer) => number,
      theirs: string,
    ) =>
      rows.push({
        ...benchRowsOf(BENCH)(name, 's', 'less', one.map(part), trl.steps.map(secondsOf(theirs))),
        peakMegabytes: { ours: megabytes(one), anchor: megabytes(trl.steps) },
      });
    const tokens = `${SAMPLES} × (${prompt.length} + ${newTokens}) tokens`;
    for (const rolloutDtype of ['float32', 'bfloat16'] as const) {
      const ours = await side(
        `ours with rollouts in ${rolloutDtype}`,
        () => Promise.resolve(Child.own('half-billion/ours.ts')),
        { compute, rolloutDtype },
        'step',
        { prompt, ...shape },
      );
      const what = `${precision}, our rollouts in ${rolloutDtype}, ${tokens}`;
      const whole = `${what}: a step, hand-over to the decoder included`;
      compared(whole, ours.steps, ({ seconds }) => seconds, 'seconds');
      compared(`${what}: its rollout`, ours.steps, secondsOf('rollout'), 'rollout');
      compared(`${what}: its update`, ours.steps, secondsOf('learn'), 'learn');
      const handOver = ours.steps.map(secondsOf('handOver'));
      rows.push(benchRowsOf(BENCH)(`${what}: its hand-over`, 's', 'less', handOver));
    }
    const byTorch = `${precision}, ${tokens}: its update by our PyTorch learner`;
    compared(byTorch, torch.steps, ({ seconds }) => seconds, 'learn');
  }
  return rows;
}

const { gradientCheckpointing, microBatchTokens } = LEARNER;
type Asked = { [field: string]: Json };
const lora = { ...LORA, targetModules: [...LORA.targetModules] };
const secondsOf =
  (part: string) =>
  (answer: ChildAnswer): number =>
    answer[part] as number;
const megabytes = (steps: readonly ChildAnswer[]): number => Math.round(steps.at(-1)!.peakBytes / 1e6);
const shown = (answer: ChildAnswer): string =>
  ['rollout', 'learn', 'handOver']
    .flatMap((part) => (part in answer ? `${part} ${secondsOf(part)(answer).toFixed(2)} s` : []))
    .concat(`whole ${answer.seconds.toFixed(2)} s, ${megabytes([answer])} MB`)
    .join(', ');
