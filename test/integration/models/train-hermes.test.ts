import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeTool } from '../../../environments/host/facts.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { metricsKey, rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import type { Episode } from '../../../core/episode/episode.ts';
import { trainableReward } from '../../../core/episode/outcome.ts';
import type { LearnerMetrics } from '../../../core/requests/learner.ts';
import { openDialect } from '../../../engine/dialect/open-dialect.ts';
import { Tokenizer } from '../../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../../engine/tokenizer/train-bpe.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { writeTinyQwen } from '../../support/tiny-qwen.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { DONE } from '../../support/ended.ts';

// A Qwen2 that is spoken to by its own chat template, in the dialect that follows from it, learns from its rewards.

const STEPS = 6;
const SPECIAL_TOKENS = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '</tool_response>',
  '<think>',
  '</think>',
];
const chatTemplate = path.resolve(import.meta.dirname, '../../parity/dialects/templates/qwen2.5-like.jinja');
const tokenizerConfig = {
  chat_template: readFileSync(chatTemplate, 'utf8'),
  eos_token: '<|im_end|>',
  pad_token: '<|endoftext|>',
};
const calculator = calculatorEnvironment();
let installation: TestInstallation;
let store: ObjectStore;
let scratch: string;

/** Merges what the template and the expert write, so that the tiny model's prompts are short. */
function qwenTokenizer(): string {
  const json = (corpus: string[], size: number) =>
    JSON.stringify(trainTokenizer(corpus, size, SPECIAL_TOKENS));
  const bytes = Tokenizer.fromJson(json([], 256 + SPECIAL_TOKENS.length));
  const dialect = openDialect(bytes, tokenizerConfig, calculator.tools.map(describeTool));
  const corpus = Array.from({ length: 300 }, (_, index) => {
    const task = calculator.task({ environment: 'calculator', split: 'train', level: 1, index });
    const { turns } = calculator.demonstrate(task, 0);
    const prompt = bytes.decode(dialect.promptTokens([{ role: 'user', content: task.prompt }]));
    const observation = bytes.decode(dialect.observationTokens({ text: '12' }, ''));
    return prompt + turns.map((turn) => dialect.turnText(turn) + observation).join('');
  });
  return json(corpus, 600);
}

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-hermes-'));
  installation = await startTestInstallation();
  store = await ObjectStore.connect(installation.settings.store);
  const folder = path.join(scratch, 'qwen');
  await writeTinyQwen(folder, qwenTokenizer(), { maxPositions: 256, tokenizerConfig });
  await importModel(store, folder, 'qwen');
});
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(scratch, { recursive: true, force: true });
});

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** All episodes of an RL step. */
async function episodesOf(run: string, step: number): Promise<Episode[]> {
  const listed = await store.list(`${rolloutsPrefix(run, 'rl')}${String(step).padStart(6, '0')}/`);
  const groups = await Promise.all(
    listed.map(async ({ key }) => loadTrajectories(store, (await store.head(key))!)),
  );
  return groups.flatMap(({ episodes }) => episodes);
}

test('a brought Qwen2 calls its tool as its chat template says, and gets better rewards by RL', async () => {
  const { model: _, ...spec } = tinySpec({ maxSteps: STEPS });
  const [warmStart, stage] = spec.stages;
  const handle = await installation.runs.start('hermes', {
    ...spec,
    model: { from: 'qwen' },
    sampling: { maxTurns: 3, maxCompletionTokens: 60 },
    stages: [
      // Just enough to call now and then.
      { ...warmStart, updatesPerRound: 60, maxRounds: 1, optimizer: { learningRate: 0.01 } },
      {
        ...stage,
        optimizer: { learningRate: 0.003 },
        graduation: { successAtLeast: 0.9, tasks: 32, everySteps: STEPS },
      },
    ],
  });
  expect((await handle.result()).end).toEqual(DONE);

  const steps = await Promise.all(Array.from({ length: STEPS }, (_, i) => episodesOf('hermes', i + 1)));
  const rewards = steps.map((episodes) =>
    mean(episodes.map(({ outcome }) => trainableReward(outcome!, 'train') ?? 0)),
  );
  expect(steps.map(({ length }) => length)).toEqual(steps.map(() => 64));
  expect(mean(rewards.slice(-3)), `rewards ${rewards.join(', ')}`).toBeGreaterThan(
    1.3 * mean(rewards.slice(0, 2)),
  );

  const turns = steps.flat().flatMap((episode) => episode.turns);
  const answered = turns.filter(({ action, observation }) => action.kind === 'call' && observation);
  expect(answered.length).toBeGreaterThan(50);
  for (const { text, action } of answered) {
    expect(text).toMatch(/<tool_call>[^]*"arguments"[^]*<\/tool_call><\|im_end\|>$/u);
    expect(action).toHaveProperty('call.arguments');
  }
  // What was learnt from is what the decoder sampled.
  for (let step = 1; step <= STEPS; step++) {
    const ref = (await store.head(metricsKey('hermes', 'rl', step)))!;
    const { metrics } = (await store.getJson(ref)) as unknown as { metrics: LearnerMetrics };
    expect(metrics.logprobGapMax).toBeGreaterThan(0);
    expect(metrics.logprobGapMax).toBeLessThan(1e-4);
    expect(metrics.logprobGapMean).toBeGreaterThan(0);
  }
  const warm = (await store.head(metricsKey('hermes', 'warm-start', 1)))!;
  expect(await store.getJson(warm)).toMatchObject({ metrics: { logprobGapMax: null, logprobGapMean: null } });
});
