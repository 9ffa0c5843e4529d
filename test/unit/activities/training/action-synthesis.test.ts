import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { synthesizeActions } from '../../../../activities/training/action-synthesis.ts';
import { planOf } from '../../../../activities/training/action-examples.ts';
import { givenSequence } from '../../../../activities/training/given-sequence.ts';
import type { ToolCall } from '../../../../core/episode/episode.ts';
import type { Json } from '../../../../core/json/json.ts';
import { readGivenLine } from '../../../../core/schema/given-line.ts';
import type { SynthesisSpec } from '../../../../core/schema/stages/synthesis.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { calculatorTool } from '../../../../environments/families/calculator/tool.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { webShopEnvironment } from '../../../../environments/families/web-shop/environment.ts';
import type { Environment, ToolContext } from '../../../../environments/contract/environment.ts';
import { inThisProcess } from '../../../../environments/host/hosted-environment.ts';
import { tokenizer } from '../../../support/fixture-tokenizer.ts';

const { signal } = new AbortController();
const USUAL: SynthesisSpec = {
  kind: 'actions',
  tasks: 24,
  alternatives: 3,
  weights: { first: 1, plans: 1, choices: 1 },
};
const dialect = openDialect(tokenizer, { dialect: 'gradus' }, []);

const make = (
  environment: Environment,
  verifier: string,
  over: {
    how?: Partial<SynthesisSpec>;
    levels?: number[];
    seed?: number;
    maxTurns?: number;
    signal?: AbortSignal;
  } = {},
) =>
  synthesizeActions(
    inThisProcess([environment]),
    () => dialect,
    () => true,
    {
      run: 'run',
      stage: 'continual',
      seed: over.seed ?? 1,
      arms: (over.levels ?? [1, 2]).map((level) => ({ environment: environment.name, level })),
      how: { ...USUAL, ...over.how },
      reward: {
        components: [{ verifier, role: 'outcome', weight: 1, gatedBy: null }],
        truncated: 'train',
      },
      limits: { maxTurns: over.maxTurns ?? 12, maxCompletionTokens: 2000 },
    },
    { signal: over.signal ?? signal },
  );
type Made = Awaited<ReturnType<typeof make>>;

interface Said {
  role: string;
  content: string;
  weight?: number;
  reasoning_content?: string;
  tool_calls?: { function: { name: string; arguments: string } }[];
}
const examplesOf = ({ lines }: Made) =>
  lines.map((line) => JSON.parse(line) as { weight: number; messages: Said[] });
const CHOICE = /^([\s\S]*)\n\nOptions for turn (\d+):\n([\s\S]*)$/u;
const PLAN = /^([\s\S]*)\n\nSay the plan, and call nothing\.$/u;
const choicesOf = (made: Made) =>
  examplesOf(made).flatMap(({ messages }) => {
    const found = CHOICE.exec(messages[0]!.content);
    if (!found) return [];
    const step = Number(found[2]) - 1;
    const turns = messages.filter(({ role }) => role === 'assistant');
    const chosen = Number(/^Option (\d+)\./u.exec(turns[step]!.reasoning_content!)![1]) - 1;
    return [{ prompt: found[1]!, step, options: found[3]!.split('\n'), turns, chosen, messages }];
  });

describe.each([
  ['calculator', calculatorEnvironment(), 'exact-match'],
  ['web-shop', webShopEnvironment(), 'environment'],
])('what is made of %s', (_, environment, verifier) => {
  test('is the same each time, other by another seed, and all of it can be read back', async () => {
    const one = await make(environment, verifier, { how: { tasks: 6 } });
    expect(await make(environment, verifier, { how: { tasks: 6 } })).toEqual(one);
    expect((await make(environment, verifier, { how: { tasks: 6 }, seed: 2 })).lines).not.toEqual(one.lines);
    const { first, plans, choices, tasks, unsolved, setAside, known } = one.facts;
    expect(one.lines).toHaveLength(first + plans + choices);
    expect(choices).toBeGreaterThan(4);
    const kept = one.tasks.filter(({ became }) => became.kind === 'kept');
    expect(kept).toHaveLength(tasks - unsolved - setAside - known);
    for (const line of one.lines) {
      const read = readGivenLine(line);
      if (read.kind !== 'demonstration') throw new Error('is no demonstration');
      const { tokens, mask } = givenSequence({ where: 'it', ...read }, () => dialect);
      expect(mask).toHaveLength(tokens.length);
      expect(mask).toContain(1);
    }
  });

  test('chooses what was done, in a place that says nothing', async () => {
    const made = await make(environment, verifier, { how: { tasks: 32 } });
    const choices = choicesOf(made);
    expect(choices.length).toBeGreaterThan(40);
    const places = [0, 0, 0, 0];
    for (const { options, chosen, turns, step } of choices) {
      expect(options).toHaveLength(4);
      expect(new Set(options.map((option) => option.replace(/^\d+\. /u, ''))).size).toBe(4);
      const { content, tool_calls: calls } = turns[step]!;
      const done = calls
        ? `${calls[0]!.function.name} ${calls[0]!.function.arguments}`
        : `answer ${JSON.stringify(content)}`;
      expect(options[chosen]).toBe(`${chosen + 1}. ${done}`);
      places[chosen]!++;
    }
    // A policy that always says the same number is right in a quarter of them, give or take.
    for (const count of places) expect(count / choices.length).toBeLessThan(0.45);
  });

  test('asks nothing that a task that measures asks, even where the environment deals such tasks to train', async () => {
    const leaking: Environment = {
      ...environment,
      task: async (ref) => {
        const split = ref.index % 2 === 0 ? ('test' as const) : ('train' as const);
        const place = { ...ref, split, index: ref.index % 200 };
        return { ...(await environment.task(ref.split === 'train' ? place : ref)), ref };
      },
    };
    const made = await make(leaking, verifier, { levels: [1], how: { tasks: 40 } });
    expect(made.facts.setAside).toBeGreaterThan(8);
    const asked = new Set<string>();
    for (const split of ['heldout', 'test'] as const)
      for (let index = 0; index < 200; index++)
        asked.add((await environment.task({ environment: environment.name, split, level: 1, index })).prompt);
    const prompts = examplesOf(made).map(({ messages }) => messages[0]!.content);
    expect(prompts.length).toBeGreaterThan(10);
    expect(prompts.filter((prompt) => asked.has(prompt.split('\n\nOptions for')[0]!))).toEqual([]);
    expect(prompts.filter((prompt) => asked.has(prompt.split('\n\nSay the plan')[0]!))).toEqual([]);
  });
});

const calculator = calculatorEnvironment();

test('an action that is as good is no alternative', async () => {
  const made = await make(calculator, 'exact-match', { how: { tasks: 48 } });
  expect(made.facts.same + made.facts.notWorse).toBeGreaterThan(10);
  const choices = choicesOf(made);
  for (const { options, chosen, turns } of choices) {
    const answer = turns.at(-1)!.content;
    const own = new Set(turns.flatMap(({ tool_calls: calls }) => calls?.[0]!.function.arguments ?? []));
    for (const option of options.filter((__, i) => i !== chosen)) {
      const [, kind, rest] = /^\d+\. (\w+) (.*)$/u.exec(option)!;
      if (kind === 'answer') expect(rest).not.toBe(JSON.stringify(answer));
      // Another order of one's own calls may be as good.
      else expect(own.has(rest!)).toBe(false);
    }
  }
  expect(choices.some(({ options }) => options.some((option) => option.includes('. answer ')))).toBe(true);
});

test('a plan knows the question alone, and a first action carries nothing out', async () => {
  const made = await make(calculator, 'exact-match', { levels: [3] });
  let open = 0;
  for (const { messages } of examplesOf(made)) {
    const [{ content: asked }, said] = messages as [Said, Said];
    if (CHOICE.test(asked)) continue;
    expect(messages).toHaveLength(2);
    const plan = PLAN.exec(asked);
    if (!plan) {
      expect(said.tool_calls).toHaveLength(1);
      continue;
    }
    const question = new Set(plan[1]!.match(/\d+/gu));
    const steps = said.content.split('\n').slice(0, -1);
    for (const step of steps) {
      open += step.includes('?') ? 1 : 0;
      for (const number of step.replace(/^\d+\. /u, '').match(/\d+/gu) ?? [])
        expect(question.has(number)).toBe(true);
    }
  }
  expect(open).toBeGreaterThan(5);
});

test('numbers with a fraction are left open as a whole', () => {
  const call = { name: 'calculator', arguments: { expression: '3.5 + 5', digits: 7.25 } };
  const plan = planOf({
    prompt: 'What is 3 and 5, and 25?',
    turns: [{ call }, { answer: '15.75' }],
    observed: [['15.75'], []],
  });
  expect(JSON.stringify(plan)).toContain('1. calculator {\\"expression\\":\\"? + 5\\",\\"digits\\":\\"?\\"}');
});

test('an option tells nothing of results that come later', async () => {
  const made = await make(calculator, 'exact-match', { how: { tasks: 48 }, levels: [2, 3] });
  let hasty = 0;
  for (const { step, options, turns, messages } of choicesOf(made)) {
    if (turns[step]!.tool_calls === undefined) continue;
    const place = messages.indexOf(turns[step]!);
    const results = (part: Said[]) =>
      part.filter(({ role }) => role === 'tool').map(({ content }) => JSON.stringify(content));
    const known = results(messages.slice(0, place));
    const later = results(messages.slice(place)).filter((text) => !known.includes(text));
    for (const option of options.filter((one) => /^\d+\. answer /u.test(one))) {
      const answer = option.replace(/^\d+\. answer /u, '');
      expect(later).not.toContain(answer);
      hasty += known.includes(answer) ? 1 : 0;
    }
  }
  expect(hasty).toBeGreaterThan(5);
});

test('what was done before a choice is read and not trained', async () => {
  const made = await make(calculator, 'exact-match', { levels: [2] });
  const later = choicesOf(made).filter(({ step }) => step > 0);
  expect(later.length).toBeGreaterThan(10);
  for (const { step, turns } of later)
    expect(turns.map(({ weight }) => weight)).toEqual(turns.map((__, i) => (i < step ? 0 : undefined)));
});

test('a trajectory that the verifiers do not pass gives nothing, and a task gives its examples once', async () => {
  const wrong: Environment = {
    ...calculator,
    demonstrate: (task, index) => {
      const { turns, weight } = calculator.demonstrate(task, index);
      return { turns: [...turns.slice(0, -1), { answer: 'nobody knows' }], weight };
    },
  };
  const unsolved = await make(wrong, 'exact-match');
  expect(unsolved.lines).toEqual([]);
  expect(unsolved.facts).toMatchObject({ unsolved: 24, choices: 0 });
  expect(unsolved.tasks[0]!.became).toMatchObject({
    kind: 'unsolved',
    reason: expect.stringMatching(/no success/) as string,
  });
  const few: Environment = {
    ...calculator,
    task: (ref) => ({ ...calculator.task({ ...ref, index: ref.index % 5 }), ref }),
  };
  const repeated = await make(few, 'exact-match', { levels: [1] });
  expect(repeated.facts.known).toBeGreaterThanOrEqual(19);
  const firsts = examplesOf(repeated).map(({ messages }) => JSON.stringify(messages));
  expect(new Set(firsts).size).toBe(firsts.length);
});

test('no expert plays a task that is left out, and none that was looked at before', async () => {
  const played = new Set<string>();
  const few: Environment = {
    ...calculator,
    // Of the train split there are two tasks, and a held-out task asks what the second asks.
    task: (ref) => {
      const index = ref.split === 'train' ? ref.index % 2 : 0;
      const expression = ['1+2+4', '9-2'][ref.split === 'train' ? index : 1]!;
      return { ...calculator.task({ ...ref, made: [{ expression, told: false }] }), ref };
    },
    demonstrate: (task, index) => {
      played.add(`${task.ref.index} ${task.prompt}`);
      return calculator.demonstrate(task, index);
    },
  };
  const made = await make(few, 'exact-match', { levels: [2] });
  expect(made.facts).toMatchObject({ tasks: 24, unsolved: 0, first: 1 });
  expect(made.facts.known + made.facts.setAside).toBe(23);
  expect(played.size).toBe(1);
});

test('a level without tasks is named, and asked for none', async () => {
  const empty: Environment = { ...calculator, taskCount: (split, level) => (level === 2 ? 0 : 512) };
  await expect(make(empty, 'exact-match')).rejects.toThrow(
    /calculator has none of the split train at level 2/,
  );
});

/** A calculator each of whose episodes has a session; `call` is told of every call. */
function withSessions(call: () => void | Promise<void> = () => undefined) {
  const open = new Set<object>();
  const { run, ...ofSession } = calculatorTool;
  const environment: Environment = {
    ...calculator,
    tools: [ofSession],
    sessions: {
      resume: 'pin',
      open: () => {
        const session = {
          act: async ({ arguments: given }: ToolCall, context: ToolContext) => {
            await call();
            return String(await run(given as never, context));
          },
          close: () => void open.delete(session),
        };
        open.add(session);
        return session;
      },
    },
  };
  return { environment, open };
}

test('an attempt that was given up and still plays changes nothing of the next one', async () => {
  const { environment, open } = withSessions(() => setImmediate());
  const how = { tasks: 6 };
  const alone = await make(environment, 'exact-match', { how });
  expect(alone.facts.choices).toBeGreaterThan(3);
  const both = await Promise.all([1, 2].map(() => make(environment, 'exact-match', { how })));
  expect(both).toEqual([alone, alone]);
  expect(open.size).toBe(0);
});

test('whoever is cancelled closes the session that is open, and is done', async () => {
  const cancelled = new AbortController();
  let calls = 0;
  const { environment, open } = withSessions(() => {
    if (++calls === 20) cancelled.abort(new Error('cancelled by a person'));
  });
  await expect(make(environment, 'exact-match', { signal: cancelled.signal })).rejects.toThrow(
    'cancelled by a person',
  );
  expect(calls).toBe(20);
  expect(open.size).toBe(0);
});

test('a task whose episode has no room is left out, and so is a kind that weighs nothing', async () => {
  const none = await make(calculator, 'exact-match', { levels: [2], maxTurns: 1 });
  expect(none.facts).toMatchObject({ unsolved: 24, first: 0 });
  const plans = await make(calculator, 'exact-match', {
    how: { tasks: 4, weights: { first: 0, plans: 0.5, choices: 0 } },
  });
  expect(plans.facts).toMatchObject({ first: 0, plans: 4, choices: 0, actions: 0 });
  expect(examplesOf(plans).every(({ weight }) => weight === 0.5)).toBe(true);
});

test('what the dialect cannot write is counted, and not kept', async () => {
  const made = await synthesizeActions(
    inThisProcess([calculator]),
    () => dialect,
    (line) => !PLAN.test((JSON.parse(line) as { messages: Said[] }).messages[0]!.content),
    {
      run: 'run',
      stage: 'continual',
      seed: 1,
      arms: [{ environment: 'calculator', level: 1 }],
      how: { ...USUAL, tasks: 6 },
      reward: {
        components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
        truncated: 'train',
      },
      limits: { maxTurns: 12, maxCompletionTokens: 2000 },
    },
    { signal },
  );
  expect(made.facts).toMatchObject({ plans: 0, unwritable: 6 });
  expect(made.lines.every((line) => (JSON.parse(line) as Json) !== null)).toBe(true);
});

test('an answer that verifiers pass in another spelling, and a call that brings the answer, are no alternatives', async () => {
  const seven: Environment = {
    ...calculator,
    task: (ref) => {
      const expression = ref.index % 2 === 0 ? '1+2+4' : '9-2';
      return { ...calculator.task({ ...ref, made: [{ expression, told: false }] }), ref };
    },
    demonstrate: (task, index) => {
      const { turns, weight } = calculator.demonstrate(task, index);
      const isOther = task.prompt.includes('9');
      return { turns: isOther ? [...turns.slice(0, -1), { answer: '7.0' }] : turns, weight };
    },
  };
  // No task of it measures: those that do would be the same two.
  const made = await make(
    { ...seven, task: (ref) => (ref.split === 'train' ? seven.task(ref) : calculator.task(ref)) },
    'exact-match',
    { levels: [2], how: { tasks: 30, alternatives: 2 } },
  );
  expect(made.facts).toMatchObject({ tasks: 30, known: 28, first: 2, choices: 0, tooFew: 5 });
  expect(made.facts.notWorse).toBeGreaterThan(3);
});
