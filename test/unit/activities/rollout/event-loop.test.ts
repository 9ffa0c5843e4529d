import { describe, expect, it } from 'vitest';
import { demonstrationSequences } from '../../../../activities/training/demonstrations.ts';
import { inTurns } from '../../../../engine/in-pieces.ts';
import { verifyAll } from '../../../../activities/verification/verify-episodes.ts';
import { RandomStream } from '../../../../core/random.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';
import { initialWeightsInPieces } from '../../../../engine/learner/initial-weights.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
import { mergeInPieces } from '../../../../engine/lora/merge-adapter.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import { trainTokenizerInPieces } from '../../../../engine/tokenizer/train-bpe.ts';
import { defineEnvironment } from '../../../../environments/contract/environment.ts';
import { exactMatch } from '../../../../environments/verifiers/exact-match.ts';
import { demonstrationCorpus } from '../../../../activities/training/corpus.ts';
import { moleculesEnvironment } from '../../../../environments/families/molecules/environment.ts';
import { LoopMeter } from '../../../../workers/loop-meter.ts';
import { dialect } from '../test-environment.ts';
import { inThisProcess } from '../../../../environments/host/hosted-environment.ts';

/** The limit of the orchestrator's process, ms of processor time. */
const LIMIT_MS = 200;

/** 4 million parameters: what takes seconds in one go where weights are tens of millions. */
const CONFIG: ModelConfig = {
  vocabSize: 4096,
  hiddenSize: 256,
  intermediateSize: 1024,
  layers: 3,
  attentionHeads: 4,
  keyValueHeads: 4,
  headSize: 64,
  maxPositions: 512,
  tieEmbeddings: true,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 10_000,
};
const lora = { rank: 128, alpha: 32, rsLora: false, targetModules: ['q_proj', 'gate_proj', 'down_proj'] };

/** What the work took at most at a time, ms of processor time. */
async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  // What is compiled and loaded on the first call is no work.
  const meter = new LoopMeter();
  await work();
  meter.stop();
  return meter.longest.busyMs;
}

describe('keeps the event loop for less than 200 ms at a time', () => {
  it('building demonstrations', async () => {
    const molecules = moleculesEnvironment();
    // A host has loaded RDKit before it is asked anything.
    await molecules.prepare!();
    const { signal } = new AbortController();
    const request = { arms: [{ environment: 'molecules', level: 1 }], count: 250, round: 1, seed: 1 };
    const environments = inThisProcess([molecules]);
    const build = () => demonstrationSequences(environments, () => dialect, request, signal);
    expect(await longestBlock(build)).toBeLessThan(LIMIT_MS);
  });

  it('learning a tokenizer', async () => {
    const molecules = moleculesEnvironment();
    await molecules.prepare!();
    const corpus = demonstrationCorpus([molecules], 120);
    expect(await longestBlock(() => inTurns(trainTokenizerInPieces(corpus, 400, [])))).toBeLessThan(LIMIT_MS);
  });

  it('comparing the samples of many tasks with each other', async () => {
    const environments = inThisProcess([
      defineEnvironment({
        name: 'essays',
        levels: [1],
        tools: [],
        verifiers: [exactMatch()],
        task: (ref) => ({ ref, prompt: 'Write.', answer: 'x' }),
        demonstrate: () => ({ turns: [], weight: 1 }),
        taskCount: () => 100,
      }),
    ]);
    const letters = new RandomStream(1, 'letters');
    const essay = () => Array.from({ length: 500 }, () => String.fromCharCode(letters.int(97, 123))).join('');
    const episodes = Array.from({ length: 6 * 256 }, (_, i) => ({
      ref: { environment: 'essays', split: 'train' as const, level: 1, index: i % 6 },
      episode: {
        sample: Math.floor(i / 6),
        task: i % 6,
        tokens: [1],
        mask: [1 as const],
        samplerLogprobs: [-1],
        turns: [],
        status: { kind: 'answered' as const, answer: essay() },
      },
    }));
    const reward: RewardSpec = {
      components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
      rules: [{ kind: 'diversity', of: 'answer', by: 'similarity', weight: 0.1, gatedBy: null }],
      truncated: 'train',
    };
    const asker = { signal: new AbortController().signal };
    const judge = () => verifyAll(environments, episodes, reward, asker);
    expect(await longestBlock(judge)).toBeLessThan(LIMIT_MS);
  });

  it('drawing weights', async () => {
    expect(await longestBlock(() => inTurns(initialWeightsInPieces(CONFIG, 1)))).toBeLessThan(LIMIT_MS);
  });

  it('merging an adapter', async () => {
    const base = await inTurns(initialWeightsInPieces(CONFIG, 1));
    const weights = initialAdapter(CONFIG, lora, 1);
    for (const { data } of weights.values()) data.fill(0.01);
    expect(await longestBlock(() => inTurns(mergeInPieces(CONFIG, base, { lora, weights })))).toBeLessThan(
      LIMIT_MS,
    );
  });
});
