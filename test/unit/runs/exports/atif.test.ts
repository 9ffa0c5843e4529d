import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { madeGroup, madeSpec } from '../../../support/made-run.ts';
import type { RolloutGroup } from '../../../../core/episode/episode.ts';
import { atifFile, atifOf } from '../../../../runs/exports/atif.ts';
import type { FoundEpisode } from '../../../../runs/find/found-episodes.ts';

const { reward } = madeSpec('made');
const schema = JSON.parse(readFileSync('test/fixtures/atif/trajectory.schema.json', 'utf8')) as object;
const validate = new Ajv2020({ strict: false }).compile(schema);

interface Trajectory {
  steps: {
    step_id: number;
    source: string;
    message: string;
    tool_calls?: { tool_call_id: string; function_name: string; arguments: object }[];
    observation?: { results: { source_call_id?: string; content: string; extra: { token_ids: number[] } }[] };
    metrics?: { prompt_token_ids?: number[]; completion_token_ids: number[]; logprobs: number[] };
    is_copied_context?: boolean;
  }[];
  final_metrics: { total_steps: number; total_completion_tokens: number };
  extra: Record<string, unknown>;
}

const found = (group: RolloutGroup, at = 0): FoundEpisode => ({
  place: { run: 'made', stage: 'rl', step: 3, group: 4, episode: at },
  group,
  task: group.tasks[group.episodes[at]!.task]!,
  episode: group.episodes[at]!,
});

/** As the reference's own validators: what no JSON Schema can say. */
function assertValid(trajectory: Trajectory): void {
  expect(validate(trajectory), JSON.stringify(validate.errors)).toBe(true);
  for (const [i, step] of trajectory.steps.entries()) {
    expect(step.step_id).toBe(i + 1);
    const calls = step.tool_calls?.map(({ tool_call_id }) => tool_call_id) ?? [];
    for (const { source_call_id } of step.observation?.results ?? []) {
      if (source_call_id !== undefined) expect(calls).toContain(source_call_id);
    }
    if (step.source !== 'agent') expect(Object.keys(step)).toEqual(['step_id', 'source', 'message']);
  }
}

test('every episode is a valid trajectory, from which its tokens and log-probs can be put together', () => {
  const size = { steps: 100, groups: 8, samples: 16 };
  const kinds = new Set<string>();
  for (let number = 0; number < 8; number++) {
    const group = madeGroup(size, 3, number);
    for (const [at, episode] of group.episodes.entries()) {
      kinds.add(episode.status.kind);
      for (const { action } of episode.turns) kinds.add(action.kind);
      const trajectory = atifOf(found(group, at), reward) as Trajectory;
      assertValid(trajectory);
      const agent = trajectory.steps.slice(1);
      expect(agent[0]!.metrics!.prompt_token_ids).toEqual(group.tasks[0]!.promptTokens);
      expect(
        agent.flatMap(({ metrics, observation }) => [
          ...metrics!.completion_token_ids,
          ...(observation?.results[0]!.extra.token_ids ?? []),
        ]),
      ).toEqual(episode.tokens);
      expect(agent.flatMap(({ metrics }) => metrics!.logprobs)).toEqual(
        episode.samplerLogprobs.filter((_, i) => episode.mask[i] === 1),
      );
      expect(trajectory.final_metrics.total_steps).toBe(trajectory.steps.length);
    }
  }
  expect([...kinds].toSorted()).toEqual(['answer', 'answered', 'call', 'failed', 'malformed', 'truncated']);
});

test('arguments of any kind are an object, and what was inherited says so', () => {
  const group = madeGroup({ steps: 1, groups: 1, samples: 1 }, 1, 0);
  const [episode] = group.episodes;
  const [first] = episode!.turns;
  const trajectory = atifOf(
    found({
      ...group,
      episodes: [
        {
          ...episode!,
          inherited: { sample: 0, turns: 1, tokens: first!.end },
          turns: [
            { ...first!, action: { kind: 'call', call: { name: 'x', arguments: [1, null] } } },
            ...episode!.turns.slice(1),
          ],
        },
      ],
    }),
    reward,
  ) as Trajectory;
  assertValid(trajectory);
  expect(trajectory.steps[1]!.tool_calls![0]!.arguments).toEqual({ value: [1, null] });
  expect(trajectory.steps.map(({ is_copied_context: copied = false }) => copied).indexOf(true)).toBe(1);
});

test('files of a run are sorted as its episodes are', () => {
  const files = [
    { stage: 'rl', step: 2, group: 0, episode: 0 },
    { stage: 'rl', step: 10, group: 0, episode: 9 },
    { stage: 'rl', step: 10, group: 0, episode: 10 },
  ].map((place) => atifFile({ run: 'r', ...place }));
  expect(files).toEqual(files.toSorted());
  expect(files[2]).toBe('rl-000010-0000-0010.json');
});

test('a turn with several calls names each, and each result names its call', () => {
  const group = madeGroup({ steps: 1, groups: 1, samples: 1 }, 1, 0);
  const [episode] = group.episodes;
  const trajectory = atifOf(
    found({
      ...group,
      episodes: [
        {
          ...episode!,
          turns: [
            {
              start: 1,
              end: 2,
              text: 'Both. <tool_call>{}</tool_call><tool_call>{}</tool_call>',
              action: {
                kind: 'calls',
                calls: [
                  { name: 'search', arguments: { query: 'x' } },
                  { name: 'now', arguments: {} },
                  { name: 'now', arguments: {} },
                ],
              },
              observation: { text: 'found\nnoon', done: true },
              results: [{ text: 'found' }, { text: 'noon', reward: 1 }],
            },
          ],
        },
      ],
    }),
    reward,
  ) as Trajectory;
  assertValid(trajectory);
  const { tool_calls, observation } = trajectory.steps[1]!;
  expect(tool_calls!.map((one) => [one.tool_call_id, one.function_name])).toEqual([
    ['call_1', 'search'],
    ['call_1_2', 'now'],
    ['call_1_3', 'now'],
  ]);
  expect(observation!.results.map((one) => [one.source_call_id, one.content])).toEqual([
    ['call_1', 'found'],
    ['call_1_2', 'noon'],
  ]);
  // They are read as one piece.
  expect(observation!.results.map(({ extra }) => extra.token_ids?.length)).toEqual([
    episode!.tokens.length - 2,
    undefined,
  ]);
});

test('calls that an agent made itself stand with the whole, for no step says them', () => {
  const group = madeGroup({ steps: 100, groups: 8, samples: 16 }, 3, 0);
  const episode = group.episodes[0]!;
  episode.calls = [
    {
      call: { name: 'search', arguments: { query: 'x' } },
      observation: { text: 'found', seconds: 2, reward: 1 },
    },
    {
      call: { name: 'serch', arguments: 3 },
      observation: { text: 'error: no serch', error: 'unknown-tool' },
    },
  ];
  const trajectory = atifOf(found(group), reward) as Trajectory;
  assertValid(trajectory);
  expect(trajectory.extra['calls']).toEqual([
    { name: 'search', arguments: { query: 'x' }, content: 'found', error: null, seconds: 2, reward: 1 },
    {
      name: 'serch',
      arguments: 3,
      content: 'error: no serch',
      error: 'unknown-tool',
      seconds: null,
      reward: null,
    },
  ]);
});
