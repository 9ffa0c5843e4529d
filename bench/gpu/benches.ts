import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { rate } from '../../core/statistics/intervals.ts';
import { total } from '../../core/training/stage-policy.ts';
import { benchRowsOf } from '../bench.ts';
import type { Bench, BenchRow } from '../bench.ts';
import type { Child } from '../child.ts';
import { anchor, compareEngines, ourEngine, withModel } from '../engine/engines.ts';
import { batchesOf, benchPrompt, SHAPES } from '../engine/speed.ts';
import { durableRun, withInstallation } from '../installations.ts';
import { cutCalculator, sizeOf } from '../specs.ts';

/** |ΔW| / |W| after the updates: float32 sums in another order move weights by some 1e-7 an update. */
const LARGEST_DIFFERENCE = 1e-5;
/** Log-probs of two float32 implementations differ by some 1e-5; a wrong mask or a wrong cache by far more. */
const LARGEST_GAP = 1e-3;
const COMPANY = 33;

/** Folders of the CUDA libraries of the GPU that is checked; null where the check is rehearsed on the processor. */
type Libraries = readonly string[] | null;

/** Our engine on the device, or on the processor beside it. */
function onDevice(libraries: Libraries): Child {
  if (libraries === null)
    return ourEngine({ ...process.env, GRADUS_LEARNER_BACKEND: 'cpu', GRADUS_DECODER: 'stock' });
  const LD_LIBRARY_PATH = [...libraries, process.env['LD_LIBRARY_PATH']].filter(Boolean).join(':');
  const device = { GRADUS_LEARNER_BACKEND: 'gpu', GRADUS_DECODER: 'cuda' };
  return ourEngine({ ...process.env, LD_LIBRARY_PATH, ...device });
}
const onProcessor = (): Child => ourEngine({ ...process.env, GRADUS_LEARNER_BACKEND: 'cpu' });

/** For an anchor that is to run beside it: the GPU that this process sees. */
const anchorOn = (libraries: Libraries): NodeJS.ProcessEnv =>
  libraries === null
    ? {}
    : { BENCH_DEVICE: 'cuda', CUDA_VISIBLE_DEVICES: process.env['CUDA_VISIBLE_DEVICES'] ?? '0' };

/** Yes is 1, and the limit, too. */
const isSo = (bench: string, name: string, so: boolean): BenchRow =>
  benchRowsOf(bench)(name, 'of 1', 'more', [so ? 1 : 0], 1);

/** The learner on a GPU: the processor's weights, its own bits again, and the speed of PyTorch on the same GPU. */
const learner = (libraries: Libraries): Bench =>
  async function* (options) {
    for (const { size, rows, length, updates: full } of SHAPES) {
      const updates = options.quick ? 2 : full / 2;
      const bench = 'gpu:learner';
      const shape = `${size} parameters, ${rows} × ${length} tokens, ${updates} updates`;
      yield* await withModel(size, options.say, async ({ config, folder, open }) => {
        const tokens = batchesOf(`gpu ${size}`, updates, rows, length, config.vocabSize);
        const trained = async (engine: Child, name: string) => {
          const file = path.join(folder, name);
          await open(engine, 'loadLearner', { precision: 'float32' });
          await engine.call('steps', { tokens });
          await engine.call('writeWeights', { file });
          return { engine, weights: await readFile(file) };
        };
        const mine = await trained(onDevice(libraries), 'first');
        const again = await trained(onDevice(libraries), 'again');
        // Gigabytes that the comparison below has need of.
        await again.engine.close();
        const processor = await trained(onProcessor(), 'processor');
        await processor.engine.close();
        const apart = difference(mine.weights, processor.weights);
        const anchors: Record<string, Child> = {};
        for (const mode of ['compile', 'eager']) {
          const cache = { TORCHINDUCTOR_CACHE_DIR: path.join(folder, `inductor-${mode}`) };
          const more = { ...cache, ...anchorOn(libraries) };
          const engine = await anchor('torch_learner', options.say, { more });
          anchors[`PyTorch, ${mode}`] = await open(engine, 'load', { mode });
        }
        const what = { bench, name: `${shape}, float32`, amount: updates * rows * length };
        const runs = options.quick ? 1 : 3;
        const steps = ['steps', { tokens }] as const;
        const name = `${shape}: |ΔW| / |W| to the processor's`;
        return [
          benchRowsOf(bench)(name, 'relative difference', 'less', [apart], LARGEST_DIFFERENCE),
          isSo(bench, `${shape}: the same bits in another process`, mine.weights.equals(again.weights)),
          ...(await compareEngines(what, steps, mine.engine, anchors, { ...options, runs })),
        ];
      });
    }
  };

/** √(Σ (a − b)²) / √(Σ b²) over float32 values. */
function difference(a: Buffer, b: Buffer): number {
  const floats = (bytes: Buffer) => new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  const left = floats(a);
  let [apart, size] = [0, 0];
  floats(b).forEach((value, i) => {
    apart += (left[i]! - value) ** 2;
    size += value ** 2;
  });
  return Math.sqrt(apart / size);
}

interface Continuations {
  tokens: number[][];
  logprobs: number[][];
}

/** The decoder by onnxruntime's CUDA provider: the processor's log-probs, in any company, and the speed of HF generate. */
const decoder = (libraries: Libraries): Bench =>
  async function* (options) {
    const bench = 'gpu:decoder';
    const newTokens = options.quick ? 8 : 64;
    for (const size of ['1M', '30M'] as const) {
      yield* await withModel(size, options.say, async ({ config, open }) => {
        const promptsOf = (count: number): number[][] =>
          Array.from({ length: count }, (_, i) => benchPrompt(`gpu ${count}`, i, 16, config.vocabSize));
        const continued = async (engine: Child, prompts: number[][]): Promise<Continuations> =>
          (await engine.call('logprobs', { prompts, new_tokens: newTokens })) as unknown as Continuations;
        const mine = await open(onDevice(libraries), 'loadDecoder');
        const prompts = promptsOf(COMPANY);
        const together = await continued(mine, prompts);
        const alone = await continued(mine, [prompts[0]!]);
        const processor = await continued(await open(onProcessor(), 'loadDecoder'), prompts);
        const gap = `${size} parameters: largest gap of log-probs to the processor's, up to the first token that differs`;
        const same = alone.logprobs[0]!.join() === together.logprobs[0]!.join();
        const rows = [
          benchRowsOf(bench)(gap, 'nats', 'less', [largestGap(together, processor)], LARGEST_GAP),
          isSo(bench, `${size} parameters: the same bits alone and with ${COMPANY - 1} others`, same),
        ];
        const generate = await open(await anchor('hf_generate', options.say, { more: anchorOn(libraries) }));
        for (const batch of [1, 16, 64]) {
          const request = { prompts: promptsOf(batch), new_tokens: newTokens, top_p: 0.95 };
          const name = `${size} parameters, batch ${batch}, 16 + ${newTokens} tokens, top-p 0.95`;
          const what = { bench, name, amount: batch * newTokens };
          const runs = options.quick ? 1 : 3;
          const anchors = { 'HF generate': generate };
          const work = ['decode', request] as const;
          rows.push(...(await compareEngines(what, work, mine, anchors, { ...options, runs })));
        }
        return rows;
      });
    }
  };

function largestGap(a: Continuations, b: Continuations): number {
  let largest = 0;
  a.tokens.forEach((tokens, i) => {
    for (const [t, token] of tokens.entries()) {
      if (token !== b.tokens[i]![t]) break;
      largest = Math.max(largest, Math.abs(a.logprobs[i]![t]! - b.logprobs[i]![t]!));
    }
  });
  return largest;
}

/** A short durable run of the calculator that learns on the GPU, twice, and once on the processor. */
const calculator = (libraries: Libraries): Bench =>
  async function* (options) {
    const spec = cutCalculator(
      options.quick ? { updates: 4, steps: 2, reports: 32 } : { updates: 200, steps: 8, reports: 256 },
    );
    const run = (backend: string) =>
      withInstallation({ ...options, env: { GRADUS_LEARNER_BACKEND: backend } }, async (client) => {
        const { result, seconds } = await durableRun(client, spec, options);
        const success = result.after === null ? 0 : rate(total(result.after.arms));
        options.say(`  learner on the ${backend}: ${seconds.toFixed(1)} s, success ${success.toFixed(3)}`);
        return { seconds, weights: result.checkpoint.weights, success };
      });
    const device = libraries === null ? 'cpu' : 'gpu';
    const mine = [await run(device), await run(device)];
    const processor = await run('cpu');
    const bench = 'gpu:calculator';
    const size = sizeOf(spec);
    const same = mine[0]!.weights === mine[1]!.weights;
    yield isSo(bench, `${size}: the same weights, to the bit, of two runs`, same);
    for (const [what, unit, better, of] of [
      ['success after', 'success', 'more', 'success'],
      ['the whole run', 's', 'less', 'seconds'],
    ] as const) {
      const name = `${size}: ${what}, against the run that learns on the processor`;
      const values = mine.map((one) => one[of]);
      yield benchRowsOf(bench)(name, unit, better, values, [processor[of]]);
    }
  };

export const GPU_BENCHES = { learner, decoder, calculator };
