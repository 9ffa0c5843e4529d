import { RandomStream } from '../../core/random.ts';
import type { Bench, BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import type { AnchorProcess } from '../engine/anchor-process.ts';
import { anchor, THREADS } from '../engine/engines.ts';
import { compare } from '../engine/interleave.ts';
import { MODELS, randomWeights, withFolder } from '../engine/models.ts';
import type { ModelSize } from '../engine/models.ts';
import { anchorOn, engineOn, onProcessor } from './device.ts';
import type { Device } from './device.ts';

/** Log-probs of two float32 implementations differ by some 1e-5; a wrong mask or a wrong cache by far more. */
const LARGEST_GAP = 1e-3;
const COMPANY = 33;

/** The decoder by onnxruntime's CUDA provider: the processor's log-probs, in any company, and the speed of HF generate. */
export const decoderOnGpu = (device: Device): Bench =>
  async function* (options) {
    for (const size of ['1M', '30M'] as const) yield* rowsOf(device, size, options);
  };

interface Continuations {
  tokens: number[][];
  logprobs: number[][];
}

async function* rowsOf(device: Device, size: ModelSize, options: BenchOptions): AsyncGenerator<BenchRow> {
  const config = MODELS[size];
  const random = new RandomStream('gpu', 'decoder', size);
  const promptsOf = (count: number): number[][] =>
    Array.from({ length: count }, () =>
      Array.from({ length: 16 }, () => random.int(0, config.vocabSize - 1)),
    );
  const bench = 'gpu:decoder';
  const newTokens = options.quick ? 8 : 64;
  yield* await withFolder(config, randomWeights(config), async (folder) => {
    const started: AnchorProcess[] = [];
    const loaded = async (engine: AnchorProcess): Promise<AnchorProcess> => {
      started.push(engine);
      const { backend } = await engine.call('loadDecoder', { folder, threads: THREADS });
      options.say(`  ${String(backend)}`);
      return engine;
    };
    const continued = async (engine: AnchorProcess, prompts: number[][]): Promise<Continuations> =>
      (await engine.call('logprobs', { prompts, new_tokens: newTokens })) as unknown as Continuations;
    try {
      const mine = await loaded(engineOn(device));
      const prompts = promptsOf(COMPANY);
      const together = await continued(mine, prompts);
      const alone = await continued(mine, [prompts[0]!]);
      const processor = await continued(await loaded(onProcessor()), prompts);
      const found: BenchRow[] = [
        benchRow({
          bench,
          case: `${size} parameters: largest gap of log-probs to the processor's, up to the first token that differs`,
          unit: 'nats',
          better: 'less',
          ours: [largestGap(together, processor)],
          anchor: LARGEST_GAP,
        }),
        benchRow({
          bench,
          case: `${size} parameters: the same bits alone and with ${COMPANY - 1} others`,
          unit: 'of 1',
          better: 'more',
          ours: [JSON.stringify(alone.logprobs[0]) === JSON.stringify(together.logprobs[0]) ? 1 : 0],
          anchor: 1,
        }),
      ];
      const transformers = await anchor('hf_generate', {
        avx512: false,
        say: options.say,
        more: anchorOn(device),
      });
      started.push(transformers);
      await transformers.call('load', { folder, threads: THREADS });
      for (const batch of [1, 16, 64]) {
        const request = { prompts: promptsOf(batch), new_tokens: newTokens, top_p: 0.95 };
        const comparison = compare(
          {
            bench,
            name: `${size} parameters, batch ${batch}, 16 + ${newTokens} tokens, top-p 0.95`,
            unit: 'tokens/s',
            amount: batch * newTokens,
          },
          { name: 'ours', run: () => mine.call('decode', request) },
          [{ name: 'HF generate', run: () => transformers.call('decode', request) }],
          { ...options, runs: options.quick ? 1 : 3 },
        );
        for await (const row of comparison) found.push(row);
      }
      return found;
    } finally {
      await Promise.all(started.map((engine) => engine.close()));
    }
  });
}

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
