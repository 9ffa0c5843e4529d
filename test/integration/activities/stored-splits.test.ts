import { expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import type { Split } from '../../../core/refs.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { putTrajectories, loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { putStepFacts } from '../../../store/training/step-facts.ts';
import { someStep } from '../../support/some-step.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { answered } from '../../support/ladder-groups.ts';
import { openTestStore } from '../../support/test-store.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';

const { store } = await openTestStore();
const { signal } = new AbortController();
const curriculum = createCurriculum({ store, environments: inThisProcess([calculatorEnvironment()]) });

const saved = (run: string) =>
  saveCheckpoint(store, {
    ...checkpointAt(1, { ...smallConfig, vocabSize: 512 }, run),
    files: newModelFiles({ ...smallConfig, vocabSize: 512 }, tokenizerJson),
  });
const scored = (score: number) => ({
  kind: 'scored' as const,
  reward: score,
  components: [{ verifier: 'exact-match', version: '1', score, contribution: score }],
});
/** A group of one task, with so many samples of it, which perhaps are more of another group's. */
const keep = (group: number, split: Split, samples: number, of?: { group: number; firstSample: number }) =>
  putTrajectories(
    store,
    { run: 'source', stage: 'rl', step: 1 },
    {
      id: `group-000${group}`,
      weights: 'w',
      temperature: 1,
      ...(of && { grows: `group-000${of.group}` }),
      tasks: [
        {
          ref: { environment: 'calculator', split, level: 1, index: of?.group ?? group },
          prompt: '',
          promptTokens: [0],
        },
      ],
      episodes: Array.from({ length: samples }, (_, sample) => ({
        ...answered(String(sample), sample, 7),
        task: 0,
        sample: (of?.firstSample ?? 0) + sample,
        outcome: scored(sample % 2),
      })),
    },
  );

const { model: _, stages, ...tiny } = tinySpec();
const [, rl] = stages;
const open = (workflowId: string, over: object) =>
  curriculum.openRun(
    {
      spec: { ...tiny, model: { from: 'base' }, stages: [{ ...rl, ...over }] },
      workflowId,
      firstExecutionRunId: workflowId,
    },
    signal,
  );

test('what was asked to measure, or to compare with, is not learnt from', async () => {
  await saved('base');
  // A name under which something lies is not free.
  await open('source', {});
  const checkpoint = await saved('source');
  await putStepFacts(store, 'source', someStep({ stageStep: 1 }));
  await keep(1, 'train', 2);
  await keep(2, 'test', 2);
  await keep(3, 'heldout', 2);
  // A greedy sample, which is one of its task.
  await keep(4, 'train', 1);
  // A tree: one root, and two rounds of one.
  await keep(5, 'train', 1);
  await keep(6, 'train', 1, { group: 5, firstSample: 1 });
  await keep(7, 'train', 1, { group: 5, firstSample: 2 });
  const from = { kind: 'stored', run: 'source', stage: 'rl' };
  const spec = await open('offline', { name: 'offline', algorithm: { kind: 'rft' }, collect: from });
  const { groups } = await curriculum.collectStored(
    {
      run: spec.run,
      seed: 1,
      stage: 'offline',
      step: 1,
      from: { run: 'source', stage: 'rl' },
      arms: [{ environment: 'calculator', level: 1 }],
      count: 8,
      reward: spec.reward,
      checkpoint,
    },
    signal,
  );
  const taken = await Promise.all(groups.map((group) => loadTrajectories(store, group)));
  expect(taken.flatMap(({ tasks }) => tasks.map(({ ref }) => ref.index)).toSorted((a, b) => a - b)).toEqual([
    1, 5,
  ]);
  const tree = taken.find(({ tasks }) => tasks[0]!.ref.index === 5)!;
  expect(tree.grows).toBeUndefined();
  expect(tree.episodes.map(({ sample }) => sample)).toEqual([0, 1, 2]);
});

test.each(['before', 'after', 'rl.held-out', 'warm-start'])(
  'a stage that does not roll out to learn is refused by its name: %s',
  async (stage) => {
    await putTrajectories(
      store,
      { run: 'source', stage, step: 1 },
      { id: 'group-0000', weights: 'w', temperature: 1, tasks: [], episodes: [] },
    );
    const collect = { kind: 'stored', run: 'source', stage };
    await expect(
      open(`from-${stage}`, { name: 'offline', algorithm: { kind: 'rft' }, collect }),
    ).rejects.toThrow(`learns from ${stage} of source, which is no stage that collects rollouts`);
  },
);
