import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  assertDemonstrable,
  demonstrationSequences,
} from '../../../../activities/training/demonstrations.ts';
import { parseAction } from '../../../../engine/dialect/gradus/parse-action.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { sessionTool } from '../../../../environments/contract/environment.ts';
import type { Demonstration, Environment } from '../../../../environments/contract/environment.ts';
import type { TrainingSample } from '../../../../core/algorithms/training-sample.ts';
import type { CurriculumSpec } from '../../../../core/schema/curriculum-spec.ts';
import type { Dialect } from '../../../../engine/dialect/contract.ts';
import { DIALECTS } from '../../engine/dialect/every-dialect.ts';
import { dialect, environmentWith, tokenizer, toolThat } from '../test-environment.ts';
import { inThisProcess } from '../../../../environments/host/hosted-environment.ts';

const signal = new AbortController().signal;
const search = (query: string) => ({ call: { name: 'search', arguments: { query } } });

const sequencesOf = (environment: Environment, count = 1, round = 1, levels: readonly number[] = [1]) =>
  demonstrationSequences(
    inThisProcess([environment]),
    () => dialect,
    { arms: levels.map((level) => ({ environment: environment.name, level })), count, round, seed: 1 },
    signal,
  );
const shows = (demonstration: Demonstration, run: (query: string) => unknown = () => 'it is far') =>
  environmentWith([toolThat(run)], { demonstrate: () => demonstration });
const masked = ({ tokens, mask }: { tokens: number[]; mask: number[] }) =>
  tokenizer.decode(tokens.filter((_, i) => mask[i] === 1));

describe('a demonstration', () => {
  test('teaches every turn of the expert, and neither prompt nor observations', async () => {
    const environment = shows({ turns: [search('moon'), { answer: 'far' }], weight: 1 });
    const [sequence] = await sequencesOf(environment);
    expect(tokenizer.decode(sequence!.tokens)).toBe(
      '<|im_start|>user\nFind 0<|im_end|>\n<|im_start|>assistant\n' +
        '<tool_call>{"name":"search","arguments":{"query":"moon"}}</tool_call>' +
        '<tool_response>it is far</tool_response><answer>far</answer>',
    );
    expect(masked(sequence!)).toBe(
      '<tool_call>{"name":"search","arguments":{"query":"moon"}}</tool_call><answer>far</answer>',
    );
    expect(sequence!.streams.advantages).toEqual(sequence!.mask);
    expect(sequence!.streams.samplerLogprobs!.every((x) => x === 0)).toBe(true);
  });

  test('of what not to write makes only its last turn less likely', async () => {
    const bad = { turns: [search('moon'), { raw: '<tool_call>moon</tool_call>' }], weight: -0.2 };
    const [sequence] = await sequencesOf(shows(bad));
    expect(masked(sequence!)).toBe('<tool_call>moon</tool_call>');
    for (const [i, advantage] of sequence!.streams.advantages!.entries()) {
      expect(advantage).toBeCloseTo(sequence!.mask[i] === 1 ? -0.2 : 0, 12);
    }
  });

  test.each<[string, Demonstration['turns'][number], string]>([
    ['its own', { ...search('moon'), observation: 'as written' }, 'as written'],
    ["the tool's", search('moon'), 'it is far'],
    [
      'the refusal of an unknown tool',
      { call: { name: 'find', arguments: {} } },
      'error: no tool find; tools: search',
    ],
    ['the error of a malformed turn', { raw: '<tool_call>moon</tool_call>' }, 'error: call is not JSON'],
  ])('reads %s after a turn', async (_, turn, observation) => {
    const [sequence] = await sequencesOf(shows({ turns: [turn, { answer: 'far' }], weight: 1 }));
    expect(tokenizer.decode(sequence!.tokens)).toContain(`<tool_response>${observation}</tool_response>`);
  });

  describe('with several calls in a turn', () => {
    const [qwen, tokens] = DIALECTS['hermes']!;
    const calls = [search('moon').call, search('sun').call];
    const taught = (environment: Environment, maxParallelCalls = 2) =>
      demonstrationSequences(
        inThisProcess([environment]),
        () => qwen,
        {
          arms: [{ environment: environment.name, level: 1 }],
          count: 1,
          round: 1,
          seed: 1,
          limits: { maxTurns: 2, maxCompletionTokens: 1000, maxParallelCalls },
        },
        signal,
      );

    test('has them as one turn, and reads what each brought, said or run', async () => {
      const keys: string[] = [];
      const environment = environmentWith(
        [
          toolThat((query, { idempotencyKey }) => {
            keys.push(idempotencyKey);
            return `${query} is far`;
          }),
        ],
        {
          demonstrate: () => ({
            turns: [
              { calls: [{ ...calls[0]!, observation: 'near' }, calls[1]!, calls[0]!] },
              { answer: 'far' },
            ],
            weight: 1,
          }),
        },
      );
      const [{ tokens: all, mask }] = (await taught(environment, 3)) as [TrainingSample];
      const json = (query: string) => `{"name": "search", "arguments": {"query": "${query}"}}`;
      const turn = ['moon', 'sun', 'moon']
        .map((query) => `<tool_call>\n${json(query)}\n</tool_call>`)
        .join('\n');
      const told = ['near', 'sun is far', 'moon is far']
        .map((text) => `<tool_response>\n${text}\n</tool_response>`)
        .join('\n');
      expect(tokens.decode(all)).toContain(
        `${turn}<|im_end|>\n<|im_start|>user\n${told}<|im_end|>\n<|im_start|>assistant\nfar<|im_end|>`,
      );
      expect(tokens.decode(all.filter((_, i) => mask[i] === 1))).toBe(`${turn}<|im_end|>far<|im_end|>`);
      expect(keys.map((key) => key.slice(key.lastIndexOf('/') + 1))).toEqual(['1.2', '1.3']);
    });

    test('is refused where the spec allows fewer, which says how many, and where the dialect has one a turn', async () => {
      const environment = shows({ turns: [{ calls }, { answer: 'far' }], weight: 1 });
      const why =
        'has 2 calls in a turn, which is malformed where sampling.maxParallelCalls is 1: raise it to 2';
      await expect(taught(environment, 1)).rejects.toThrow(why);
      await expect(sequencesOf(environment)).rejects.toThrow('A turn of gradus ends with its call');
      const stage = { kind: 'supervised', name: 'warm', arms: [{ environment: environment.name, level: 1 }] };
      const begun = (spoken: Dialect, maxParallelCalls: number) =>
        assertDemonstrable(
          inThisProcess([environment]),
          () => spoken,
          { stages: [stage], sampling: { maxParallelCalls } } as unknown as CurriculumSpec,
          signal,
        );
      await expect(begun(qwen, 2)).resolves.toBeUndefined();
      await expect(begun(qwen, 1)).rejects.toThrow(why);
      await expect(begun(dialect, 2)).rejects.toThrow('the stage warm was refused before anything was spent');
    });
  });

  test('cannot go on after an answer, or run a tool that has effects', async () => {
    const answered = shows({ turns: [{ answer: 'a' }, { answer: 'b' }], weight: 1 });
    await expect(sequencesOf(answered)).rejects.toMatchObject({
      boundary: 'environment',
      type: 'demonstration',
    });
    const costly = environmentWith([toolThat(() => '', { placement: 'long', effect: 'once' })], {
      demonstrate: () => ({ turns: [search('moon'), { answer: 'far' }], weight: 1 }),
    });
    await expect(sequencesOf(costly)).rejects.toMatchObject({
      type: 'demonstration',
      message: expect.stringContaining('give the turn its observation') as string,
    });
  });

  test('cannot go on in a session that would come back by a call that must be made once only', async () => {
    const acted: string[] = [];
    const noArguments = z.strictObject({});
    const order = { name: 'order', effect: 'once', placement: 'long' } as const;
    const shop = environmentWith(
      [
        sessionTool({ ...order, description: 'Orders.', arguments: noArguments }),
        sessionTool({ name: 'look', description: 'Looks.', arguments: noArguments }),
      ],
      {
        sessions: {
          resume: 'replay',
          open: () => ({ act: ({ name }) => `${acted.push(name)} done` }),
        },
        demonstrate: () => ({
          turns: [
            { call: { name: 'order', arguments: {} }, observation: '1 done' },
            { call: { name: 'look', arguments: {} } },
            { answer: 'far' },
          ],
          weight: 1,
        }),
      },
    );
    await expect(sequencesOf(shop)).rejects.toMatchObject({
      boundary: 'environment',
      type: 'demonstration',
      message: expect.stringContaining('give the turns after it their observations, too') as string,
    });
    expect(acted).toEqual([]);
  });

  test('is refused where no episode has room for one, and not where some fit', async () => {
    const environment = environmentWith([toolThat(() => 'it is far')], {
      demonstrate: (_, index) => ({
        turns: [...Array.from({ length: 1 + (index % 2) }, () => search('moon')), { answer: 'far' }],
        weight: 1,
      }),
    });
    const shown = (maxTurns: number, maxCompletionTokens: number, count: number) =>
      demonstrationSequences(
        inThisProcess([environment]),
        () => dialect,
        {
          arms: [{ environment: environment.name, level: 1 }],
          count,
          round: 1,
          seed: 1,
          limits: { maxTurns, maxCompletionTokens },
        },
        signal,
      );
    const lengths = (await shown(3, 1000, 8)).map(({ tokens, mask }) => tokens.length - mask.indexOf(1));
    const shortest = Math.min(...lengths);
    expect(Math.max(...lengths)).toBeGreaterThan(shortest);
    await expect(shown(2, shortest, 8)).resolves.toHaveLength(8);
    for (const [turns, tokens] of [
      [1, 1000],
      [3, shortest - 1],
    ] as const) {
      await expect(shown(turns, tokens, 8)).rejects.toMatchObject({
        boundary: 'spec',
        type: 'no-room',
        message:
          `no demonstration of ${environment.name} at level 1 fits into an episode: they take 2 turns or more and ${shortest} tokens or more after the prompt, ` +
          `where sampling.maxTurns is ${turns} and sampling.maxCompletionTokens is ${tokens}: raise them`,
      });
    }
  });

  test('that cannot go on leaves no session open', async () => {
    let closed = 0;
    const look = sessionTool({ name: 'look', description: 'Looks.', arguments: z.strictObject({}) });
    const environment = environmentWith([look], {
      demonstrate: () => ({
        turns: [{ call: { name: 'look', arguments: {} } }, { answer: 'far' }, { answer: 'near' }],
        weight: 1,
      }),
      sessions: { resume: 'replay', open: () => ({ act: () => 'a roof', close: () => void closed++ }) },
    });
    await expect(sequencesOf(environment)).rejects.toThrow('only the last turn');
    expect(closed).toBe(1);
  });

  /** Each session says how many turns it has had; `look` is told of each. */
  const inSessions = (look: () => void | Promise<void> = () => undefined) => {
    const open = new Set<object>();
    const tool = sessionTool({ name: 'look', description: 'Looks.', arguments: z.strictObject({}) });
    const environment = environmentWith([tool], {
      demonstrate: () => ({ turns: [looks, looks, { answer: 'far' }], weight: 1 }),
      sessions: {
        resume: 'pin',
        open: () => {
          let turns = 0;
          const session = {
            act: async () => {
              await look();
              return `turn ${++turns}`;
            },
            close: () => void open.delete(session),
          };
          open.add(session);
          return session;
        },
      },
    });
    return { environment, open };
  };
  const looks = { call: { name: 'look', arguments: {} } };

  test('whose round is cancelled leaves no session open', async () => {
    const cancelled = new AbortController();
    const { environment, open } = inSessions(() => cancelled.abort(new Error('cancelled by a person')));
    const arms = [{ environment: environment.name, level: 1 }];
    const made = demonstrationSequences(
      inThisProcess([environment]),
      () => dialect,
      { arms, count: 1, round: 1, seed: 1 },
      cancelled.signal,
    );
    await expect(made).rejects.toThrow('cancelled by a person');
    expect(open.size).toBe(0);
  });

  test('that another run plays at the same time has a session of its own', async () => {
    const { environment, open } = inSessions(() => setImmediate());
    const environments = inThisProcess([environment]);
    const arms = [{ environment: environment.name, level: 1 }];
    const made = () =>
      demonstrationSequences(environments, () => dialect, { arms, count: 3, round: 1, seed: 1 }, signal);
    const alone = await made();
    expect(tokenizer.decode(alone[0]!.tokens)).toContain('<tool_response>turn 2</tool_response>');
    expect(await Promise.all([made(), made()])).toEqual([alone, alone]);
    expect(open.size).toBe(0);
  });

  test('that is refused names the environment when no worker has it', async () => {
    const request = { arms: [{ environment: 'nowhere', level: 1 }], count: 1, round: 1, seed: 1 };
    await expect(demonstrationSequences(new Map(), () => dialect, request, signal)).rejects.toMatchObject({
      boundary: 'environment',
      type: 'unknown',
      retryable: true,
    });
  });
});

describe('a round of demonstrations', () => {
  test('is the same whenever it is made', async () => {
    const round = () => sequencesOf(calculatorEnvironment(), 24, 3, [1, 2]);
    expect(await round()).toEqual(await round());
  });

  test('takes the levels in turn, and tasks that no other round has', async () => {
    const asked: { level: number; index: number }[] = [];
    const environment = environmentWith([], {
      task: (ref) => {
        asked.push(ref);
        return { ref, prompt: 'p', answer: 'a' };
      },
      taskCount: () => Infinity,
    });
    for (const round of [1, 2, 3]) await sequencesOf(environment, 10, round, [1, 2]);
    expect(asked.filter(({ level }) => level === 1)).toHaveLength(15);
    expect(new Set(asked.map(({ level, index }) => `${level}/${index}`)).size).toBe(30);
  });

  test('goes through a family with an end again', async () => {
    const asked: number[] = [];
    const environment = environmentWith([], {
      task: (ref) => {
        asked.push(ref.index);
        return { ref, prompt: 'p', answer: 'a' };
      },
      taskCount: () => 4,
    });
    await sequencesOf(environment, 6, 2);
    expect(asked).toEqual([2, 3, 0, 1, 2, 3]);
  });

  test('of the calculator shows well-formed calls, and now and then what not to write', async () => {
    const sequences = await sequencesOf(calculatorEnvironment(), 200, 1, [1, 2]);
    const negative = sequences.filter(({ streams }) => streams.advantages!.some((a) => a < 0));
    expect(negative.length).toBeGreaterThan(0);
    expect(negative.length).toBeLessThan(40);
    const good = sequences.filter((sequence) => !negative.includes(sequence));
    for (const sequence of good) {
      const answer = /<answer>.*<\/answer>$/su.exec(masked(sequence));
      expect(parseAction(answer![0]).kind).toBe('answer');
    }
  });
});
