import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { z } from 'zod';
import type { evaluateOutput } from '../../../cli/json/evaluate.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { StackAddresses } from '../../../infra/dev/stack-addresses.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { findTrajectories } from '../../../store/rollout/trajectories.ts';
import { findEvaluation } from '../../../store/run/evaluation.ts';
import type { StoredEvaluation } from '../../../store/run/evaluation.ts';
import type { EvaluateOutcome } from '../../../workflows/training/evaluate.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// An evaluation may search for its turns: several attempts of a task, without any draw, and the same whoever is killed.

const RUN = 'searched';
const tasks = [{ environment: 'calculator', levels: [1, 2] }];
const beams = { width: 8, groups: 4, diversity: 0.5 };
/** Six groups of 32 tasks with four attempts of each. */
const MANY = { checkpoint: RUN, tasks, count: 192, samples: 4, sampling: { maxTurns: 3 }, beams };

let installation: TestInstallation;
let store: ObjectStore;
let stack: StackAddresses;

beforeAll(async () => {
  installation = await startTestInstallation();
  const { settings, runs } = installation;
  const { temporalAddress: address, namespace } = settings;
  stack = { temporal: { address, namespace }, objectStore: { ...settings.store, useSSL: false } };
  store = await ObjectStore.connect(settings.store);
  await (await runs.start(RUN, briefSpec())).result();
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
});

const start = (workflowId: string, input: unknown): Promise<WorkflowHandle<() => Promise<EvaluateOutcome>>> =>
  installation.runs.client.workflow.start('evaluate', {
    args: [input],
    workflowId,
    taskQueue: QUEUES.orchestrator,
  });

async function episodesOf(run: string): Promise<RolloutGroup['episodes']> {
  const found = await store.list(rolloutsPrefix(run, 'evaluate'));
  const groups = await Promise.all(found.map(({ key }) => findTrajectories(store, key)));
  return groups.flatMap((group) => group!.episodes);
}

/** What an evaluation says, without the name that it has. */
const numbers = ({ spec, ...rest }: StoredEvaluation) => ({ ...rest, spec: { ...spec, run: undefined } });

test('attempts of a task differ, and a killed worker changes none of them', async () => {
  await (await start('left-alone', MANY)).result();
  const leftAlone = (await findEvaluation(store, 'left-alone'))!;
  expect(leftAlone.spec.beams).toEqual(beams);
  expect(leftAlone.tasks).toHaveLength(192);
  const episodes = await episodesOf('left-alone');
  const firstTurns = (task: number) =>
    episodes
      .filter((episode) => episode.task === task)
      .slice(0, 4)
      .map(({ tokens, turns }) => tokens.slice(0, turns[0]!.end).join());
  const different = Array.from({ length: 32 }, (_, task) => new Set(firstTurns(task)).size);
  // The diverse groups may agree where the policy is sure, and mostly do not.
  expect(Math.max(...different)).toBe(4);

  const handle = await start('killed', MANY);
  await killInActivity(
    installation,
    (group) => ids.group('killed', 'evaluate', 0, group),
    'advance',
    'rollout',
  );
  await handle.result();
  expect(numbers((await findEvaluation(store, 'killed'))!)).toEqual(numbers(leftAlone));
  const sampled = (of: typeof episodes) =>
    of.map(({ task, sample, tokens, samplerLogprobs, status }) => {
      return { task, sample, tokens, samplerLogprobs, status };
    });
  expect(sampled(await episodesOf('killed'))).toEqual(sampled(episodes));
}, 600_000);

test('the command has pass@k of beams beside that of as many samples', async () => {
  const gradus = gradusCommand(stack);
  const flags = '--environment calculator:1 --tasks 32 --samples 2 --max-turns 3 --beams 4 --groups 2';
  const args = ['evaluate', RUN, ...flags.split(' '), '--diversity', '0.5', '--against-sampling'];
  const { stdout, stderr, code } = await gradus(...args, '--json');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const { evaluation, against, difference } = JSON.parse(stdout) as z.infer<typeof evaluateOutput>;
  expect(evaluation).toMatchObject({ beams: { width: 4, groups: 2, diversity: 0.5 }, samples: 2 });
  expect(against).toMatchObject({ beams: null, samples: 2, sampling: evaluation.sampling });
  expect(against!.checkpoint).toEqual(evaluation.checkpoint);
  expect(difference!.all).toMatchObject({ n: 32 });
  for (const one of [evaluation, against!])
    expect(one.passAtK.map(({ k, n }) => [k, n])).toEqual([
      [1, 32],
      [2, 32],
    ]);
  const tables = await gradus(...args);
  expect(tables.stdout).toContain('turns are the best of 4 beams in 2 groups, λ = 0.5');
  expect(tables.stdout.match(/pass@2 \d/g)).toHaveLength(2);

  const alone = await gradus('evaluate', RUN, '--environment', 'calculator:1', '--groups', '2');
  expect(alone.stderr).toContain('give --beams N');
  // Before the folder, which would be gigabytes, is read.
  const nothing = await gradus('evaluate', './folder', '--environment', 'calculator:1', '--against-sampling');
  expect(nothing.stderr).toContain('there are none here: give --beams N');
  const ofSampled = await gradus('evaluate', against!.run, '--beams', '4', '--against-sampling');
  expect(ofSampled.stderr).toContain('name a stored evaluation that had some');
  const replayed = await gradus('replay', `${evaluation.run}/evaluate/0/0/0`);
  expect(replayed.stderr).toContain('were searched for by beams');
}, 600_000);

test('one beam finds what greedy decoding draws, episode by episode', async () => {
  const few = { ...MANY, count: 16, samples: 1 };
  const how = {
    one: { beams: { width: 1 } },
    greedy: { beams: undefined, sampling: { topK: 1, maxTurns: 3 } },
  };
  const tokens = Object.entries(how).map(async ([id, change]) => {
    await (await start(id, { ...few, ...change })).result();
    return (await episodesOf(id)).map((episode) => episode.tokens);
  });
  const [one, greedy] = await Promise.all(tokens);
  expect(one).toEqual(greedy);
}, 600_000);

test('a dialect whose turns end by what they say is refused before anything is spent', async () => {
  const dialect = { name: 'search-r1', tool: 'calculator', argument: 'expression' };
  const handle = await start('refused', { ...MANY, dialect });
  const failure = await handle.result().then(
    () => 'it was taken',
    (error: Error) => rootOf(error).message,
  );
  expect(failure).toContain('beams end at a stop token');
});

function rootOf(error: Error): Error {
  let at = error;
  while (at.cause instanceof Error) at = at.cause;
  return at;
}
