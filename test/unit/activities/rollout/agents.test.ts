import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { assertStartable } from '../../../../activities/rollout/agents/assert-startable.ts';
import { behindOnePrompt, episodeOfTurns } from '../../../../activities/rollout/agents/episode-of-turns.ts';
import { Slots } from '../../../../activities/rollout/agents/slots.ts';
import type { FollowedEpisode } from '../../../../activities/rollout/trajectory-parts.ts';
import type { GroupTask } from '../../../../core/episode/episode.ts';
import { pathsOf } from '../../../../core/episode/paths.ts';
import type { EpisodePath } from '../../../../core/episode/paths.ts';
import type { AgentSpec } from '../../../../core/schema/agent.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import type { StoredTurn } from '../../../../gateway/stored-turn.ts';
import { TurnTree } from '../../../../gateway/turn-tree.ts';
import { tokenizer } from '../../../support/fixture-tokenizer.ts';
import { DIALECTS } from '../../engine/dialect/every-dialect.ts';

const dialect = openDialect(tokenizer, {}, []);
const call = '<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>';

/** A conversation whose turns say these texts, each after what the agent put there: the first one is the prompt. */
function pathOf(said: readonly [put: string, text: string][]): StoredTurn[] {
  return said.map(([put, text], i) => {
    const messages = [{ role: i === 0 ? ('user' as const) : ('tool' as const), content: put }];
    const tokens = tokenizer.encode(text);
    return {
      id: String(i),
      parent: i === 0 ? null : String(i - 1),
      asked: 'asked',
      ordinal: 0,
      tools: [],
      messages,
      observed: i === 0 ? dialect.promptTokens(messages) : dialect.messageTokens(messages, said[i - 1]![1]),
      tokens,
      samplerLogprobs: tokens.map((_, at) => -1 - i - at / 100),
      finish: 'stop',
      text,
      answer: { role: 'assistant', content: text },
      created: 0,
    };
  });
}

const task: GroupTask = {
  ref: { environment: 'calculator', split: 'train', level: 1, index: 0 },
  prompt: 'native',
  promptTokens: [7, 7],
};
const made = (sample: number, said: readonly [string, string][], of = 0): FollowedEpisode => {
  const { promptTokens, ...episode } = episodeOfTurns([pathOf(said)], () => dialect);
  return {
    task: { ...task, promptTokens },
    episode: { task: of, sample, ...episode, status: { kind: 'ended' } },
  };
};

test('turns that were sampled are trained, and what the agent put between them is not', () => {
  const { promptTokens, tokens, mask, samplerLogprobs, turns } = episodeOfTurns(
    [
      pathOf([
        ['What is 1 + 2?', call],
        ['3', 'so'],
        ['say it', '<answer>3</answer>'],
      ]),
    ],
    () => dialect,
  );
  const trained = tokens.filter((_, at) => mask[at] === 1);
  expect(tokenizer.decode(trained)).toBe(`${call}so<answer>3</answer>`);
  expect(samplerLogprobs.every((logprob, at) => logprob < 0 === (mask[at] === 1))).toBe(true);
  expect(tokenizer.decode(promptTokens)).toContain('What is 1 + 2?');
  expect(tokenizer.decode(tokens.filter((_, at) => mask[at] === 0))).toContain('3');
  for (const { start, end, text } of turns) expect(tokenizer.decode(tokens.slice(start, end))).toBe(text);
  expect(turns.map(({ action, observation }) => [action.kind, observation])).toEqual([
    ['call', { text: '3' }],
    ['malformed', { text: 'say it', error: 'malformed-call' }],
    ['answer', undefined],
  ]);
});

test('a turn keeps the weights that sampled it, where they are not those of its episode', () => {
  const path = pathOf([
    ['What is 1 + 2?', call],
    ['3', '<answer>3</answer>'],
  ]);
  const { turns } = episodeOfTurns([[path[0]!, { ...path[1]!, weights: 'newer' }]], () => dialect);
  expect(turns.map((turn) => turn.weights)).toEqual([undefined, 'newer']);
  expect(turns[0]).not.toHaveProperty('weights');
});

test('whatever agents write as prompts, the tokens of each episode are its own, and no prompt is trained', () => {
  const said = fc.array(fc.tuple(fc.constantFrom('ab', 'abc', 'x', ''), fc.constantFrom(call, 'so')), {
    minLength: 1,
    maxLength: 3,
  });
  fc.assert(
    fc.property(fc.array(said, { minLength: 1, maxLength: 4 }), (all) => {
      const episodes = all.map((one, sample) => made(sample, one));
      const group = behindOnePrompt([task], episodes);
      const { promptTokens } = group.tasks[0]!;
      group.episodes.forEach(({ tokens, mask, samplerLogprobs, turns }, i) => {
        const was = episodes[i]!;
        expect([...promptTokens, ...tokens]).toEqual([...was.task.promptTokens, ...was.episode.tokens]);
        expect([mask.length, samplerLogprobs.length]).toEqual([tokens.length, tokens.length]);
        const sampled = all[i]!.flatMap(([, text]) => tokenizer.encode(text));
        expect(tokens.filter((_, at) => mask[at] === 1)).toEqual(sampled);
        for (const { start, end, text } of turns)
          expect(tokenizer.decode(tokens.slice(start, end))).toBe(text);
      });
    }),
  );
});

test('of an agent that branches each path is read as it was sampled, and each sampled token is trained in one', () => {
  const turn = fc.record({ after: fc.nat(), root: fc.boolean(), put: fc.constantFrom('ab', 'x', '') });
  const trees = fc.array(turn, { minLength: 1, maxLength: 6 }).map((drawn) => {
    const tree = new TurnTree();
    drawn.forEach(({ after, root, put }, i) => {
      const parent = root || i === 0 ? null : tree.all[after % i]!;
      const [one] = pathOf([[put, `so ${i}`]]);
      const observed = parent ? dialect.messageTokens(one!.messages, parent.text) : one!.observed;
      tree.add({ ...one!, id: `${i}`, asked: `${i}`, parent: parent && parent.id, observed });
    });
    return tree;
  });
  fc.assert(
    fc.property(fc.array(trees, { minLength: 1, maxLength: 3 }), (all) => {
      const episodes = all.map((tree, sample): FollowedEpisode => {
        const { promptTokens, ...said } = episodeOfTurns(tree.branches(), () => dialect);
        return {
          task: { ...task, promptTokens },
          episode: { task: 0, sample, ...said, status: { kind: 'ended' } },
        };
      });
      const group = behindOnePrompt([task], episodes);
      const { promptTokens } = group.tasks[0]!;
      group.episodes.forEach((episode, i) => {
        const paths = pathsOf(episode);
        const rows = all[i]!.rows();
        const along = <T>(values: readonly T[], { places }: EpisodePath) => places.map((at) => values[at]!);
        expect(paths.map((path) => [...promptTokens, ...along(episode.tokens, path)])).toEqual(
          rows.map((row) => [...row.promptTokens, ...row.tokens]),
        );
        expect(paths.map((path) => along(episode.mask, path).filter((bit) => bit === 1))).toEqual(
          rows.map(({ mask }) => mask.filter((bit) => bit === 1)),
        );
        const own = paths.flatMap(({ places, shared }) => places.slice(shared));
        expect(own.toSorted((a, b) => a - b)).toEqual(episode.tokens.map((_, at) => at));
        expect(episode.turns).toHaveLength(all[i]!.size);
        for (const { start, end, text } of episode.turns)
          expect(tokenizer.decode(episode.tokens.slice(start, end))).toBe(text);
      });
    }),
  );
});

test('an episode that has failed has no tokens, and takes nothing of the prompt of the others', () => {
  const failed: FollowedEpisode = {
    task,
    episode: {
      task: 0,
      sample: 1,
      tokens: [],
      mask: [],
      samplerLogprobs: [],
      turns: [],
      status: { kind: 'failed', boundary: 'environment', reason: 'it ended with 1' },
    },
  };
  const one = made(0, [['hello', 'so']]);
  const group = behindOnePrompt(
    [task, task],
    [one, failed, { ...failed, episode: { ...failed.episode, task: 1 } }],
  );
  expect(group.tasks.map(({ promptTokens }) => promptTokens)).toEqual([one.task.promptTokens, [7, 7]]);
  expect(group.episodes[1]).toEqual(failed.episode);
});

const agent: AgentSpec = {
  model: 'policy',
  timeoutSeconds: 1,
  maxAttempts: 1,
  branches: 'train',
  concurrency: 1,
};

test('a command that is not there is refused, and so is a variable that is not set', async () => {
  await assertStartable({ ...agent, command: ['sh', '-c', 'exit'] });
  await assertStartable({ ...agent, url: 'http://127.0.0.1:9' });
  const absent = { ...agent, command: ['no-such-agent'] as [string], inheritEnv: ['GRADUS_NO_SUCH_KEY'] };
  await expect(assertStartable(absent)).rejects.toMatchObject({
    boundary: 'spec',
    retryable: false,
    message: expect.stringMatching(
      /before anything was spent[^]*agent.command\[0\]: "no-such-agent" is no program[^]*inheritEnv\[0\]: GRADUS_NO_SUCH_KEY is not set/,
    ) as string,
  });
});

test('no more agents are at work than may be, and who waits can be called off', async () => {
  const slots = new Slots();
  const { signal } = new AbortController();
  const off = new AbortController();
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  let [most, now] = [0, 0];
  const work = async (): Promise<void> => {
    most = Math.max(most, ++now);
    await opened;
    now--;
  };
  const all = [1, 2, 3, 4].map(() => slots.with(2, signal, work));
  const called = slots.with(2, off.signal, work);
  off.abort(new Error('called off'));
  await expect(called).rejects.toThrow('called off');
  open();
  await Promise.all(all);
  expect(most).toBe(2);
});

test('several calls of a turn have the results that the agent sent for them, where the spec allows so many', () => {
  const [hermes] = DIALECTS['hermes']!;
  const one = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>';
  const path = pathOf([
    ['What is 1 + 2?', `${one}\n${one}<|im_end|>`],
    ['3', 'so<|im_end|>'],
  ]);
  path[1]!.messages = ['3', '4'].map((content) => ({ role: 'tool', content }));
  const turnOf = (mostCalls?: number) => episodeOfTurns([path], () => hermes, mostCalls).turns[0];
  const call = { name: 'f', arguments: {} };
  expect(turnOf(2)).toMatchObject({
    action: { kind: 'calls', calls: [call, call] },
    observation: { text: '3\n4' },
    results: [{ text: '3' }, { text: '4' }],
  });
  expect(turnOf()).toMatchObject({ action: { kind: 'malformed' }, observation: { error: 'malformed-call' } });
});
