import { expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import type { SynthesizeRequest } from '../../../core/requests/demonstrations.ts';
import { defineEnvironment } from '../../../environments/contract/environment.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';
import { openTestStore } from '../../support/test-store.ts';

const { store } = await openTestStore();
const signal = new AbortController().signal;

/** A calculator whose expert solves its tasks as long as `knows` says so. */
const expert = { knows: true };
const calculator = calculatorEnvironment();
const environments = inThisProcess([
  defineEnvironment({
    ...calculator,
    demonstrate: (task, index) =>
      expert.knows ? calculator.demonstrate(task, index) : { turns: [{ answer: 'who knows' }], weight: 1 },
  }),
]);
const curriculum = createCurriculum({ store, environments });

async function requestOf(run: string, maxPositions: number): Promise<SynthesizeRequest> {
  const content = checkpointAt(0, { ...smallConfig, maxPositions }, run);
  const files = new Map([...content.files, ['tokenizer.json', Buffer.from(tokenizerJson)]]);
  return {
    run,
    seed: 1,
    stage: 'continual',
    arms: [{ environment: 'calculator', level: 2 }],
    how: {
      kind: 'actions',
      tasks: 6,
      alternatives: 2,
      weights: { first: 1, plans: 1, choices: 1 },
    },
    checkpoint: await saveCheckpoint(store, { ...content, files }),
    reward: {
      components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
      truncated: 'train',
    },
    limits: { maxTurns: 4, maxCompletionTokens: 96 },
  };
}

test('what was made is the data of the stage, though its expert knows nothing any more', async () => {
  const request = await requestOf('made-once', 512);
  const { spans: _, ...first } = await curriculum.synthesize(request, signal);
  expect(first.facts).toMatchObject({ tasks: 6, unsolved: 0, unwritable: 0, source: first.data.sha256 });
  expect(first.facts.choices).toBeGreaterThan(6);
  expert.knows = false;
  try {
    const { spans: __, ...second } = await curriculum.synthesize(request, signal);
    expect(second).toEqual(first);
    // Whoever trains on it reads it as data that somebody gave.
    const round = await curriculum.buildDemonstrations(
      {
        run: request.run,
        seed: 1,
        stage: request.stage,
        round: 1,
        arms: request.arms,
        count: 8,
        given: { source: first.data.key, ref: first.data },
        updates: { minibatch: 4, epochs: 1, seed: 1 },
        checkpoint: request.checkpoint,
      },
      signal,
    );
    expect(round.sequences).toBe(8);
    expect(round.maskedTokens).toBeLessThan(round.tokens);
    const elsewhere = { ...request, run: 'made-of-nothing' };
    await expect(curriculum.synthesize(elsewhere, signal)).rejects.toThrow(
      /the stage continual has made nothing of 6 tasks: .*"unsolved":6.*what an expert does is no success/,
    );
  } finally {
    expert.knows = true;
  }
});

test('an example that the model has no room for is counted, and left out', async () => {
  const { facts } = await curriculum.synthesize(await requestOf('small-room', 110), signal);
  expect(facts.unwritable).toBeGreaterThan(3);
  expect(facts.first).toBeGreaterThan(0);
});

test('half a character that a tool says costs the examples that have it, and not the stage', async () => {
  const broken = inThisProcess([
    defineEnvironment({
      ...calculator,
      tools: calculator.tools.map((tool) => ({ ...tool, run: () => 'half \ud83d' })),
    }),
  ]);
  const request = await requestOf('half-characters', 512);
  const { facts } = await createCurriculum({ store, environments: broken }).synthesize(request, signal);
  expect(facts.first).toBe(6);
  expect(facts.unwritable + facts.tooFew).toBeGreaterThan(6);
});
