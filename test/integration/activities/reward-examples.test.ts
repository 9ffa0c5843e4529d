import { expect, test } from 'vitest';
import { collectRewardExamples, rewardExamples } from '../../../activities/training/reward-examples.ts';
import type { Episode } from '../../../core/episode/episode.ts';
import type { RewardExamplesRequest } from '../../../core/requests/reward-model.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import { putStepFacts } from '../../../store/training/step-facts.ts';
import { someStep } from '../../support/some-step.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { answered } from '../../support/ladder-groups.ts';
import { openTestStore } from '../../support/test-store.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';

const { store } = await openTestStore();
const { signal } = new AbortController();

const scored = (score: number) => ({
  kind: 'scored' as const,
  reward: score,
  components: [{ verifier: 'exact-match', version: '1', score, contribution: score }],
});

interface Asked {
  index: number;
  prompt: number;
  scores?: number[];
  steps?: number[];
  session?: Episode['session'];
}

/** A group of one task, of a step that is done: a sample for each score, one after the other. */
const keep = async (run: string, step: number, { index, prompt, scores = [1, 0], steps, session }: Asked) => {
  await putTrajectories(
    store,
    { run, stage: 'rl', step },
    {
      id: 'group-0000',
      weights: `weights-${step}`,
      temperature: 1,
      tasks: [
        {
          ref: { environment: 'calculator', split: 'train', level: 1, index },
          prompt: '',
          promptTokens: [prompt],
        },
      ],
      episodes: scores.map((score, sample) => {
        const outcome = scored(score);
        return {
          ...answered('1', sample, 7),
          turns: [{ start: 0, end: 1, text: '', action: { kind: 'answer', answer: '1' } }],
          ...(session && { session }),
          outcome: {
            ...outcome,
            components: outcome.components.map((one) => ({
              ...one,
              ...(steps && { steps: [steps[sample]!] }),
            })),
          },
        };
      }),
    },
  );
  await putStepFacts(store, run, someStep({ stageStep: step }));
};

async function collected(run: string, over: Partial<RewardExamplesRequest> = {}) {
  const config = { ...smallConfig, vocabSize: 512 };
  const files = newModelFiles(config, tokenizerJson);
  const request: RewardExamplesRequest = {
    run,
    seed: 1,
    stage: 'judge',
    from: { run, stage: 'rl' },
    arms: [{ environment: 'calculator', level: 1 }],
    maxEpisodes: 1000,
    heldOut: 0.25,
    reward: {
      components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
      truncated: 'train',
    },
    checkpoint: await saveCheckpoint(store, { ...checkpointAt(1, config, run), files }),
    ...over,
  };
  const { examples } = await collectRewardExamples(store, request, signal);
  return store.read(examples, rewardExamples, { signal });
}

const promptsIn = (examples: { tokens: number[] }[]) => new Set(examples.map(({ tokens }) => tokens[0]));

test('a task that comes at several indexes is one task, so none that is held out is learnt from', async () => {
  // Six prompts, each at two indexes: few problems make twins.
  for (let index = 0; index < 12; index++) await keep('twins', index + 1, { index, prompt: index % 6 });
  const { train, heldOut } = await collected('twins');
  expect(promptsIn(train).size + promptsIn(heldOut).size).toBe(6);
  expect([...promptsIn(heldOut)].filter((prompt) => promptsIn(train).has(prompt))).toEqual([]);
  expect(new Set(train.map(({ task }) => task)).size).toBe(promptsIn(train).size);
});

test('tasks of sessions may have one prompt, and are tasks of their own', async () => {
  for (let index = 0; index < 8; index++)
    await keep('sessions', index + 1, { index, prompt: 3, session: { state: index } });
  const { train, heldOut } = await collected('sessions');
  expect(new Set(train.map(({ task }) => task)).size).toBe(6);
  expect(new Set(heldOut.map(({ task }) => task)).size).toBe(2);
});

test('what is held out is not what was drawn most often', async () => {
  // Two tasks of ten have been drawn ten times as often as the others.
  let step = 0;
  for (let index = 0; index < 10; index++)
    for (let draw = 0; draw < (index < 2 ? 10 : 1); draw++)
      await keep('often', ++step, { index, prompt: index });
  let often = 0;
  for (let seed = 0; seed < 10; seed++) {
    const { heldOut } = await collected('often', { seed, stage: `judge-${seed}`, heldOut: 0.1 });
    if ([...promptsIn(heldOut)][0]! < 2) often++;
  }
  // A fifth, and by their draws 20 of 28.
  expect(often).toBeLessThan(5);
});

test('labels of steps are to differ, and outcomes then need not', async () => {
  for (let index = 0; index < 4; index++)
    await keep('steps', index + 1, { index, prompt: index, scores: [0, 0], steps: [1, 0] });
  await expect(collected('steps')).rejects.toMatchObject({ type: 'no-rewards' });
  const { train } = await collected('steps', { stage: 'stepwise', stepsOf: 'exact-match' });
  expect(train).toHaveLength(6);
});
