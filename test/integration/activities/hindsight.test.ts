import { expect, test } from 'vitest';
import { createRollout } from '../../../activities/rollout/rollout.ts';
import { episodeFactsOf } from '../../../core/episode/facts.ts';
import { trainingSamples } from '../../../core/algorithms/training-sample.ts';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import { createVerification } from '../../../activities/verification/verifiers.ts';
import type { GroupRequest } from '../../../core/requests/rollout.ts';
import { failedTasksOf } from '../../../core/training/tasks-again.ts';
import { relabelled } from '../../../activities/training/relabel.ts';
import type { Speaking } from '../../../activities/rollout/policies.ts';
import { openDialect } from '../../../engine/dialect/open-dialect.ts';
import { calculatorTool } from '../../../environments/families/calculator/tool.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { defineEnvironment } from '../../../environments/contract/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { creditBy } from '../../support/algorithm.ts';
import { tokenizer, tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { groupRequest } from '../../support/group-request.ts';
import { poolSaying } from '../../support/saying.ts';
import { openTestStore } from '../../support/test-store.ts';
import { checkpointAt, smallConfig } from '../../support/store/fixtures.ts';

const { store } = await openTestStore();
const signal = new AbortController().signal;

/** Every task is answered by 21, and an answer solves the task that asks for it. */
const environment = defineEnvironment({
  ...calculatorEnvironment('echo'),
  hint: () => null,
  task: (ref) => ({ ref, prompt: `Say 21 (${ref.index})`, answer: '21' }),
  relabel: ({ answer }) =>
    answer === null ? null : { prompt: `Say ${answer}`, answer: answer === '8' ? 'eight' : answer },
});
const environments = inThisProcess([environment]);
const ref = (index: number) => ({ environment: 'echo', split: 'train' as const, level: 1, index });

/** One group of two samples a task, which all say the same. */
async function rollOut(
  run: string,
  saying: string | readonly string[],
  over: Partial<GroupRequest> = {},
  by = environments,
) {
  const group = groupRequest(run, [ref(0), ref(1)], { samples: 2, ...over });
  const policies = poolSaying(saying);
  const { part } = await createRollout({ store, policies, environments: by }).advance({ group }, signal);
  const verification = createVerification({ store, environments: by });
  return verification.verifyGroup({ group, part, followed: [] }, signal);
}
const settings = creditBy({ kind: 'hindsight', ownSuccesses: false });
const rewarded = { ...settings, reward: groupRequest('', []).reward };
const textOf = (tokens: readonly number[]) => tokenizer.decode(tokens);

test('what failed is asked again with a hint, and learnt without it', async () => {
  const { trajectories, tried } = await rollOut('corrected', '<answer>7</answer>');
  const failedTasks = failedTasksOf({ tried: tried! });
  expect(failedTasks).toEqual([ref(0), ref(1)]);
  const again = { group: 1, firstTask: 2, tasks: [failedTasks[1]!], failed: trajectories! };
  const corrected = await rollOut('corrected', '<answer>21</answer>', again);
  const group = await loadTrajectories(store, corrected.trajectories!);
  const [task] = group.tasks;
  expect(group.tasks).toHaveLength(1);
  expect(task!.prompt).toBe('Say 21 (1)\n\nAn earlier attempt failed: the answer 7 was wrong. Try again.');
  expect(textOf(task!.promptTokens)).toContain('An earlier attempt failed');

  const { sequences } = trainingSamples([group], rewarded);
  expect(sequences).toHaveLength(2);
  for (const { tokens, mask } of sequences) {
    expect(textOf(tokens)).toContain('Say 21 (1)');
    expect(textOf(tokens)).not.toContain('An earlier attempt');
    expect(textOf(tokens.filter((_, i) => mask[i] === 1))).toContain('21');
  }

  const failedAgain = await rollOut('corrected', '<answer>9</answer>', { ...again, group: 2 });
  const wrong = await loadTrajectories(store, failedAgain.trajectories!);
  expect(trainingSamples([wrong], rewarded).sequences).toEqual([]);
});

test('what a family says of an attempt is the hint, and its correction is learnt without it', async () => {
  const calculator = inThisProcess([calculatorEnvironment()]);
  const task = { ...ref(0), environment: 'calculator' };
  const { prompt, answer, calls } = calculatorEnvironment().task(task);
  const one = { tasks: [task] };
  const { trajectories, tried } = await rollOut('family', '<answer>none</answer>', one, calculator);
  const again = { group: 1, firstTask: 1, tasks: failedTasksOf({ tried: tried! }), failed: trajectories! };
  const way = [`<tool_call>${JSON.stringify(calls![0])}</tool_call>`, `<answer>${answer}</answer>`];
  const corrected = await rollOut('family', way, again, calculator);
  const group = await loadTrajectories(store, corrected.trajectories!);
  const hint = 'Nothing was computed: each operation is a call of the calculator.';
  expect(group.tasks.map((kept) => kept.prompt)).toEqual([`${prompt}\n\n${hint}`]);
  const { sequences } = trainingSamples([group], rewarded);
  expect(sequences.length).toBeGreaterThan(0);
  for (const { tokens } of sequences) {
    expect(textOf(tokens)).toContain(prompt);
    expect(textOf(tokens)).not.toContain('Nothing was computed');
  }
});

test('a task whose hint cannot be made was asked again all the same, and fails with why', async () => {
  const silent = inThisProcess([
    defineEnvironment({
      ...calculatorEnvironment('echo'),
      hint: () => {
        throw new Error('no hint');
      },
    }),
  ]);
  const { trajectories, tried } = await rollOut('silent', '<answer>7</answer>', {}, silent);
  const again = { group: 1, firstTask: 2, tasks: failedTasksOf({ tried: tried! }), failed: trajectories! };
  const corrected = await rollOut('silent', '<answer>21</answer>', again, silent);
  const facts = episodeFactsOf(
    await loadTrajectories(store, corrected.trajectories!),
    groupRequest('', []).reward,
  );
  expect(facts.map(({ hinted, outcome }) => [hinted, outcome])).toEqual(facts.map(() => [true, 'failed']));
  expect(facts).toHaveLength(4);
  expect(facts[0]!.reason).toContain('no hint');
});

test('a correction that is sampled again after its worker was lost has the same bytes', async () => {
  const { trajectories, tried } = await rollOut('again', '<answer>7</answer>');
  const group = groupRequest('again', failedTasksOf({ tried: tried! }), {
    group: 1,
    firstTask: 2,
    failed: trajectories!,
  });
  const rollout = createRollout({ store, policies: poolSaying('<answer>21</answer>'), environments });
  const first = await rollout.advance({ group }, signal);
  await store.remove([first.part.key]);
  expect((await rollout.advance({ group }, signal)).part).toEqual(first.part);
});

test('an episode that solved another task is learnt behind the prompt of that one', async () => {
  const config = { ...smallConfig, vocabSize: 512 };
  const files = newModelFiles(config, tokenizerJson);
  const checkpoint = await saveCheckpoint(store, { ...checkpointAt(1, config, 'relabelled'), files });
  const { reward } = groupRequest('', []);
  const curriculum = createCurriculum({ store, environments });
  const relabel = async (run: string, saying: string) => {
    const { trajectories } = await rollOut(run, saying);
    const request = { run, stage: 'rl', step: 1, groups: [trajectories!], reward, checkpoint };
    const { spans: _, ...first } = await curriculum.relabelEpisodes(request, signal);
    const { spans: __, ...second } = await curriculum.relabelEpisodes(request, signal);
    expect(second).toEqual(first);
    return first.trajectories;
  };

  const group = await loadTrajectories(store, (await relabel('relabelled', '<answer>7</answer>'))!);
  expect(group.episodes).toHaveLength(4);
  // The samples of a task that solved the same other one are no more than of any task.
  expect(group.tasks.map(({ prompt }) => prompt)).toEqual(Array(2).fill('Say 7'));
  expect(group.episodes.map(({ task, sample }) => [task, sample])).toEqual([
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ]);
  const single = { ...creditBy({ kind: 'hindsight', mostPerTask: 1 }), reward: rewarded.reward };
  expect(trainingSamples([group], single).sequences).toHaveLength(2);
  const { sequences } = trainingSamples([group], rewarded);
  expect(sequences.map(({ tokens }) => textOf(tokens).includes('Say 7'))).toEqual(Array(4).fill(true));
  expect(textOf(sequences[0]!.tokens)).not.toContain('Say 21');

  // A success needs no other task, and what the verifiers do not confirm is none.
  expect(await relabel('solved', '<answer>21</answer>')).toBeNull();
  expect(await relabel('unconfirmed', '<answer>8</answer>')).toBeNull();
  // What an episode was asked, and failed, is no other task, whatever its answer is said to be.
  const other = await loadTrajectories(store, (await relabel('repeated', '<answer>21 (0)</answer>'))!);
  expect(other.tasks.map(({ ref }) => ref)).toEqual([ref(1)]);
});

test('a task that has its own tools is another task with these, too', async () => {
  const own = { ...calculatorTool, name: 'own' };
  const task = environment.task;
  const owning = inThisProcess([{ ...environment, task: (at) => ({ ...task(at), tools: [own] }) }]);
  const { trajectories } = await rollOut('own-tools', '<answer>7</answer>', {}, owning);
  const groups = [await loadTrajectories(store, trajectories!)];
  const spoken: string[][] = [];
  const dialectFor = ({ tools }: Speaking) => {
    spoken.push(tools.map(({ described }) => described.name));
    return openDialect(tokenizer, {}, []);
  };
  const { reward } = groupRequest('', []);
  expect((await relabelled(owning, dialectFor, groups, { reward }, { signal }))?.tasks).toHaveLength(2);
  expect(new Set(spoken.flat())).toEqual(new Set(['own']));
});
