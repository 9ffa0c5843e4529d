import { describe, expect, test } from 'vitest';
import { advanceEpisode, observe } from '../../../../activities/rollout/advance-episode.ts';
import type { AdvanceContext } from '../../../../activities/rollout/advance-episode.ts';
import { actsOf } from '../../../../core/episode/acts.ts';
import type { Episode } from '../../../../core/episode/episode.ts';
import { randomKey } from '../../../../core/random.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { ToolRefusal } from '../../../../environments/contract/environment.ts';
import type { Environment, Tool } from '../../../../environments/contract/environment.ts';
import { describeTool } from '../../../../environments/host/facts.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { houseWith, ROOMS, WAYS } from '../../../support/houses.ts';
import { ScriptedPolicy } from '../../../support/scripted-policy.ts';
import { configOf, tokenizerOf } from '../../engine/dialect/fixtures.ts';
import { environmentWith, toolThat } from '../test-environment.ts';

// Turns with several calls in the dialect hermes, as Qwen's chat template writes them.

const tokenizer = tokenizerOf('qwen');

interface Made {
  query: string;
  key: string;
}

/** A tool that notes what it is asked, and says `found <query>`; `no` is refused, and `crash` crashes. */
function noting(made: Made[], over: Partial<Tool> = {}): Tool {
  return toolThat((query, { idempotencyKey }) => {
    made.push({ query, key: idempotencyKey });
    if (query === 'no') throw new ToolRefusal('nothing of that name');
    if (query === 'crash') throw new Error('the tool is broken');
    return `found ${query}`;
  }, over);
}

const call = (query: string, name = 'search') =>
  `<tool_call>\n{"name": "${name}", "arguments": {"query": "${query}"}}\n</tool_call>`;
const calls = (...queries: string[]) => `${queries.map((query) => call(query)).join('\n')}<|im_end|>`;
const told = (...texts: string[]) =>
  `\n<|im_start|>user\n${texts.map((text) => `<tool_response>\n${text}\n</tool_response>`).join('\n')}<|im_end|>\n<|im_start|>assistant\n`;

const newEpisode = (): Episode => ({
  sample: 0,
  task: 0,
  tokens: [],
  mask: [],
  samplerLogprobs: [],
  turns: [],
  status: { kind: 'running' },
});

function contextOf(
  environment: Environment,
  turns: readonly string[],
  sampling: Partial<AdvanceContext['sampling']> = { maxParallelCalls: 3 },
) {
  const dialect = openDialect(
    tokenizer,
    configOf('qwen', 'qwen2.5-like'),
    environment.tools.map(describeTool),
  );
  const hosted = hostedHere(environment);
  const policy = new ScriptedPolicy(
    turns.map((text) => {
      const tokens = tokenizer.encode(text);
      return { tokens, logprobs: tokens.map((_, i) => -0.01 * (i + 1)) };
    }),
  );
  return {
    policy,
    tokenizer,
    dialect,
    environment: hosted,
    ref: { environment: environment.name, split: 'train' as const, level: 1, index: 0 },
    tools: hosted.tools,
    sampling: { temperature: 1, topK: 0, topP: 1, maxTurns: 8, maxCompletionTokens: 2000, ...sampling },
    maxPositions: 6000,
    promptTokens: dialect.promptTokens([{ role: 'user', content: 'Find it.' }]),
    episodeId: 'run/rl/1/0/0',
    policySession: '1/0',
    key: randomKey('test'),
    signal: new AbortController().signal,
  };
}

/** Plays an episode, and holds it to its tokens: what was sampled is trained as it was sampled, and nothing else is. */
async function play(context: ReturnType<typeof contextOf>, episode = newEpisode()): Promise<Episode> {
  await advanceEpisode(context, episode);
  const { tokens, mask, samplerLogprobs, turns } = episode;
  const sampled = turns.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, i) => start + i));
  expect(mask.flatMap((bit, i) => (bit === 1 ? [i] : []))).toEqual(sampled);
  samplerLogprobs.forEach((logprob, i) => expect(logprob !== 0).toBe(mask[i] === 1));
  for (const { start, end, text } of turns) expect(tokens.slice(start, end)).toEqual(tokenizer.encode(text));
  return episode;
}

describe('a turn with several calls', () => {
  test('makes them in order, each by a key of its own, and reads all results as its template writes them', async () => {
    const made: Made[] = [];
    const turns = [calls('a', 'b', 'a'), `I know.\n${calls('c')}`, 'It is a.<|im_end|>'];
    const episode = await play(contextOf(environmentWith([noting(made)]), turns));
    expect(made).toEqual([
      { query: 'a', key: 'run/rl/1/0/0/1' },
      { query: 'b', key: 'run/rl/1/0/0/1.2' },
      { query: 'a', key: 'run/rl/1/0/0/1.3' },
      { query: 'c', key: 'run/rl/1/0/0/2' },
    ]);
    expect(tokenizer.decode(episode.tokens)).toBe(
      turns[0] + told('found a', 'found b', 'found a') + turns[1] + told('found c') + turns[2],
    );
    expect(episode.status).toEqual({ kind: 'answered', answer: 'It is a.' });
    const [first, second] = episode.turns;
    expect(first).toMatchObject({
      action: {
        kind: 'calls',
        calls: ['a', 'b', 'a'].map((query) => ({ name: 'search', arguments: { query } })),
      },
      observation: { text: 'found a\nfound b\nfound a' },
      results: [{ text: 'found a' }, { text: 'found b' }, { text: 'found a' }],
    });
    expect(second).toMatchObject({ action: { kind: 'call' }, observation: { text: 'found c' } });
    expect(second).not.toHaveProperty('results');
  });

  test('tells the mistake of one call as its result, and makes the others', async () => {
    const made: Made[] = [];
    const turn = `${call('no')}\n${call('x', 'fly')}\n${call('a')}<|im_end|>`;
    const episode = await play(contextOf(environmentWith([noting(made)]), [turn, 'so<|im_end|>']));
    expect(made.map(({ query }) => query)).toEqual(['no', 'a']);
    expect(episode.status.kind).toBe('answered');
    const { results, observation } = episode.turns[0]!;
    expect(results!.map(({ error }) => error)).toEqual(['tool-error', 'unknown-tool', undefined]);
    expect(results![0]!.text).toContain('nothing of that name');
    expect(observation).toMatchObject({ error: 'tool-error' });
    expect(tokenizer.decode(episode.tokens)).toContain(told(...results!.map(({ text }) => text)));
  });

  test('fails its episode with a call that breaks, as a single call does, and makes none behind it', async () => {
    const made: Made[] = [];
    const tool = noting(made, {
      limits: { timeoutSeconds: 5, heartbeatSeconds: 5, maxAttempts: 1, maxOutputCharacters: 100 },
    });
    const episode = await play(contextOf(environmentWith([tool]), [calls('a', 'crash', 'b')]));
    expect(made.map(({ query }) => query)).toEqual(['a', 'crash']);
    expect(episode.status).toMatchObject({ kind: 'failed', boundary: 'tool' });
    expect(episode.turns[0]!.results).toMatchObject([{ text: 'found a' }]);
    expect(episode.turns[0]).not.toHaveProperty('observation');
    expect(episode.tokens.length).toBe(episode.turns[0]!.end);
  });

  test.each([
    [undefined, 'error: one call a turn'],
    [1, 'error: one call a turn'],
    [2, 'error: at most 2 calls a turn'],
  ])('beyond the limit of %s makes no call, is told so, and goes on', async (maxParallelCalls, text) => {
    const made: Made[] = [];
    const context = contextOf(environmentWith([noting(made)]), [calls('a', 'b', 'c'), 'so<|im_end|>'], {
      ...(maxParallelCalls !== undefined && { maxParallelCalls }),
    });
    const episode = await play(context);
    expect(made).toEqual([]);
    expect(episode.turns[0]!.observation).toEqual({ text, error: 'malformed-call' });
    expect(tokenizer.decode(episode.tokens)).toBe(`${calls('a', 'b', 'c')}${told(text)}so<|im_end|>`);
  });

  test('whose results leave no room is cut there', async () => {
    const turn = calls('a', 'b');
    const maxCompletionTokens = tokenizer.encode(turn).length + 4;
    const context = contextOf(environmentWith([noting([])]), [turn], {
      maxParallelCalls: 2,
      maxCompletionTokens,
    });
    const episode = await play(context);
    expect(episode.status).toEqual({ kind: 'truncated', limit: 'tokens' });
    expect(episode.tokens.length).toBe(maxCompletionTokens);
    expect(tokenizer.decode(episode.tokens)).toBe(
      (turn + told('found a', 'found b')).slice(0, tokenizer.decode(episode.tokens).length),
    );
  });

  test('waits for each long call by itself, and goes on with the next one', async () => {
    const made: Made[] = [];
    const environment = environmentWith([
      noting(made),
      toolThat(() => '', { name: 'wait', placement: 'long', effect: 'idempotent' }),
    ]);
    const turn = `${call('x', 'wait')}\n${call('a')}\n${call('y', 'wait')}<|im_end|>`;
    const context = contextOf(environment, [turn, 'so<|im_end|>']);
    const waits = (query: string) => ({ kind: 'calling', call: { name: 'wait', arguments: { query } } });
    const episode = await play(context);
    expect(episode.status).toEqual(waits('x'));
    observe(context, episode, { text: 'waited x', reward: 0.5 });
    // Whoever goes on with it has what was stored of it.
    const later = JSON.parse(JSON.stringify(episode)) as Episode;
    expect(made).toEqual([]);
    await play(context, later);
    expect(later.status).toEqual(waits('y'));
    expect(made).toEqual([{ query: 'a', key: 'run/rl/1/0/0/1.2' }]);
    observe(context, later, { text: 'waited y', reward: 0.25, seconds: 2 });
    await play(context, later);
    expect(later.status).toEqual({ kind: 'answered', answer: 'so' });
    expect(later.turns[0]!.observation).toMatchObject({ text: 'waited x\nfound a\nwaited y', reward: 0.75 });
    expect(tokenizer.decode(later.tokens)).toBe(
      turn + told('waited x', 'found a', 'waited y') + 'so<|im_end|>',
    );
  });
});

describe.each(Object.keys(WAYS))('in a session that comes back by %s, a turn with several calls', (way) => {
  const act = (name: string, given: object = {}) =>
    `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;
  const turn = (...acts: string[]) => `${acts.join('\n')}<|im_end|>`;
  const go = (room: string) => act('go', { room });
  const light = act('light');

  test('acts one after the other on what the calls before it have left', async () => {
    const house = houseWith(WAYS[way]!());
    const turns = [turn(light, light, go(ROOMS[1]!)), turn(light, act('look')), 'lit<|im_end|>'];
    const context = contextOf(house, turns);
    const episode = await play(context);
    expect(episode.status).toEqual({ kind: 'answered', answer: 'lit' });
    expect(episode.turns.map(({ results }) => results?.map(({ text }) => text))).toEqual([
      [`lit the ${ROOMS[0]}\n[image image/png]`, 'error: it is lit', `in the ${ROOMS[1]}`],
      [`lit the ${ROOMS[1]}\n[image image/png]`, `in the ${ROOMS[1]}, call 5; lit: ${ROOMS[0]}, ${ROOMS[1]}`],
      undefined,
    ]);
    expect(episode.turns[0]!.observation).toMatchObject({ reward: 1, error: 'tool-error' });
    expect(actsOf(episode.turns, context.tools).map((one) => [one.turn, one.nth])).toEqual([
      [1, undefined],
      [1, 2],
      [1, 3],
      [2, undefined],
      [2, 2],
    ]);
    // A process that has nothing of the session brings it back by these calls, and goes on.
    if (way === 'pin' || way === 'reattach') return;
    const half = { ...newEpisode(), ...cutAfter(episode, 1), session: {} };
    const elsewhere = contextOf({ ...house, name: `${house.name} elsewhere` }, turns.slice(1));
    await play(elsewhere, half);
    expect([half.tokens, half.turns.map(({ results }) => results?.map(({ text }) => text))]).toEqual([
      episode.tokens,
      episode.turns.map(({ results }) => results?.map(({ text }) => text)),
    ]);
  });

  test('ends with the call that ends the episode: those behind it are not made', async () => {
    const around = ROOMS.flatMap((room, n) => (n === 0 ? [light] : [go(room), light]));
    const context = contextOf(houseWith(WAYS[way]!()), [turn(...around, act('look'), act('look'))], {
      maxParallelCalls: 20,
    });
    const episode = await play(context);
    expect(episode.status).toEqual({ kind: 'ended' });
    expect(episode.turns[0]!.results!.length).toBe(around.length);
    expect(episode.turns[0]!.observation).toMatchObject({ reward: ROOMS.length, done: true });
    expect(episode.tokens.length).toBe(episode.turns[0]!.end);
    expect(episode.session!.ended!.info).toEqual({ lit: ROOMS.map((_, room) => room) });
  });
});

/** An episode after so many of its turns. */
const cutAfter = ({ tokens, mask, samplerLogprobs, turns }: Episode, number: number) => {
  const end = turns[number]!.start;
  return {
    tokens: tokens.slice(0, end),
    mask: mask.slice(0, end),
    samplerLogprobs: samplerLogprobs.slice(0, end),
    turns: structuredClone(turns.slice(0, number)),
  };
};
