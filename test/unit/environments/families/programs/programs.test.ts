import { expect, describe, test } from 'vitest';
import type { Json } from '../../../../../core/json/json.ts';
import type { MadeTaskRef, Split } from '../../../../../core/refs.ts';
import type {
  Candidate,
  FastVerifier,
  Proposed,
  Task,
} from '../../../../../environments/contract/environment.ts';
import { programsEnvironment } from '../../../../../environments/families/programs/environment.ts';
import {
  readProgram,
  shapeOf,
  valueOf,
  writeProgram,
} from '../../../../../environments/families/programs/program.ts';
import type { Expression } from '../../../../../environments/families/programs/program.ts';
import { outputsOf } from '../../../../../environments/families/programs/proposals.ts';
import { behaviourOf, PROBES, splitOf } from '../../../../../environments/families/programs/tasks.ts';
import { runFunction } from '../../../../../environments/sandbox/webassembly/function-run.ts';

const environment = programsEnvironment();
const { signal } = new AbortController();
const refAt = (level: number, index = 0, split: Split = 'train'): MadeTaskRef => ({
  environment: 'programs',
  split,
  level,
  index,
});
/** `-8 - -3` as a program says it, which knows no signs. */
const asPositive = (text: string): string => text.replaceAll(/-(\d+)/gu, '(0 - $1)');
const taskAt = (ref: MadeTaskRef): Task => environment.task(ref) as Task;
const candidate = (task: Task, answer: string | null): Candidate => ({
  task,
  answer,
  tools: [],
  episode: {
    turns: [],
    status: answer === null ? { kind: 'truncated', limit: 'tokens' } : { kind: 'answered', answer },
  },
});
const propose = (level: number, answer: string, made?: Json[]): Promise<Proposed> | Proposed =>
  environment.proposals!.check(candidate(taskAt({ ...refAt(level), ...(made && { made }) }), answer), signal);
const scoreOf = async (task: Task, answer: string | null): Promise<number> => {
  const verdict = await (environment.verifiers[0] as FastVerifier).verify(candidate(task, answer), {
    signal,
  });
  return (verdict as { score: number }).score;
};
const programOf = (text: string): Expression => readProgram(text) as Expression;

describe('programs', () => {
  test('are written in one way, with no bracket that they do not need', () => {
    const ways = {
      'x => ((x)+(3))*2': 'x => (x + 3) * 2',
      'x => x-(3-x)': 'x => x - (3 - x)',
      'x => (x*2)%3+1': 'x => x * 2 % 3 + 1',
    };
    for (const [from, to] of Object.entries(ways)) expect(writeProgram(programOf(from))).toBe(to);
    expect(shapeOf(programOf('x => (x + 3) * 2'))).toBe('(x + k) * k');
  });

  test('have answers that come down to a number or a behaviour; what is neither comes down to nothing, and is no vote', async () => {
    const canonicalOf = async (level: number, answer: string | null): Promise<string | undefined> => {
      const asked = candidate(taskAt(refAt(level)), answer);
      const verdict = await (environment.verifiers[0] as FastVerifier).verify(asked, { signal });
      return verdict.canonical;
    };
    for (const level of [1, 2]) {
      expect([await canonicalOf(level, ' 017 '), await canonicalOf(level, '-0')]).toEqual(['17', '0']);
      for (const unread of ['I do not know', '１７', '17.0', '1e3', '99999', '', null])
        expect(await canonicalOf(level, unread)).toBe('');
    }
    expect(await canonicalOf(3, 'x => x + x')).toBe(await canonicalOf(3, 'x => 2 * x'));
    expect(await canonicalOf(3, 'x => y')).toBe('');
  });

  test.each([
    ['x => Math.random()', /Math/],
    ['x => x + "17"', /"/],
    ['x => x /* 17 */ + 1', /\//],
    ['x => y + 1', /y/],
    ['x => x + 100', /100/],
    ['x => { for (;;) ; }', /\{/],
    ['x => x + 1 + 1 + 1 + 1 + 1', /operations/],
    ['x => (x + 1', /no expression/],
    ['x => x 1', /no expression/],
    [`x => ${'(('.repeat(20)}x${'))'.repeat(20)}`, /characters/],
    ['f => f', /begin/],
  ])('%s is none', (text, why) => {
    expect(readProgram(text)).toEqual({ fault: expect.stringMatching(why) as string });
  });

  test('give in QuickJS what the prompts say of them', async () => {
    for (const text of ['x => x % 4 + 7', 'x => (x - 9) * 5', 'x => 3 - x * x', 'x => x * 2 % 7 - 1']) {
      const ours = PROBES.map((x) => valueOf(programOf(text), x) + 0);
      const theirs = await outputsOf(text, PROBES, signal);
      expect((theirs as number[]).map((value) => value + 0)).toEqual(ours);
    }
  });
});

describe('tasks', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    'of level %i are solved by the expert, and by no other answer',
    async (level) => {
      for (const index of [0, 1, 40, 300]) {
        const task = taskAt(refAt(level, index));
        const { turns } = await environment.demonstrate!(task, index);
        expect(await scoreOf(task, turns[0]!.answer!)).toBe(1);
        expect(await scoreOf(task, '77')).toBe(0);
        expect(await scoreOf(task, null)).toBe(0);
      }
    },
  );

  test('are worked out by the expert, and every step is true of the task', async () => {
    const steps = { operation: 0, equation: 0, none: 0 };
    for (const level of [1, 2, 3])
      for (let index = 0; index < 400; index++) {
        const task = taskAt(refAt(level, index));
        const { turns } = await environment.demonstrate!(task, index);
        const { think, answer } = turns[0]!;
        const said = think!.split(/(?<=\.) /u).filter((step) => step !== '');
        if (said.length === 0) steps.none++;
        for (const step of said) {
          const [, left, right] = /^(.+) is (-?\d+)\.$/u.exec(step)!;
          // Of an inversion each step is an equation that the answer solves; of the others it is an operation of two numbers.
          const x = level === 2 ? Number(answer) : undefined;
          expect(left!.includes('x')).toBe(level === 2);
          const given = valueOf(programOf(`x => ${asPositive(left!)}`), x ?? 0);
          expect(given + 0, `${task.prompt} ${think}`).toBe(Number(right));
          steps[level === 2 ? 'equation' : 'operation']++;
        }
        // The last step of a program that is run has the answer, and so has that of an inversion that needs no guess.
        if (level === 1) expect(think).toMatch(new RegExp(` is ${answer}\\.$`, 'u'));
        if (level === 2 && think!.endsWith(`x is ${answer}.`)) steps.equation++;
      }
    expect(steps.operation).toBeGreaterThan(800);
    expect(steps.equation).toBeGreaterThan(800);
    // Nobody can undo a remainder: there the expert guesses.
    expect(steps.none).toBeLessThan(120);
  });

  test('of two splits are of different programs, at whatever level', () => {
    const behaviours = (split: Split): Set<string> =>
      new Set(
        [1, 2, 3].flatMap((level) =>
          Array.from({ length: environment.taskCount(split, level) }, (_, index) => {
            const { program } = taskAt(refAt(level, index, split)).info as { program: string };
            return behaviourOf(programOf(program));
          }),
        ),
      );
    const [train, heldout] = [behaviours('train'), behaviours('heldout')];
    expect(train.size).toBeGreaterThan(100);
    expect(heldout.size).toBeGreaterThan(20);
    expect([...heldout].filter((one) => train.has(one))).toEqual([]);
  });

  test.each([1, 2, 3])('of level %i have prompts that no other split has', (level) => {
    const promptsOf = (split: Split): string[] =>
      Array.from(
        { length: environment.taskCount(split, level) },
        (_, index) => taskAt(refAt(level, index, split)).prompt,
      );
    const train = new Set(promptsOf('train'));
    const held = [...promptsOf('heldout'), ...promptsOf('test')];
    expect(new Set(held).size).toBe(held.length);
    expect(held.filter((prompt) => train.has(prompt))).toEqual([]);
  });

  test('are as many as is said, all of them different', () => {
    for (const level of [1, 2, 3]) {
      const count = environment.taskCount('heldout', level);
      const prompts = Array.from(
        { length: count },
        (_, index) => taskAt(refAt(level, index, 'heldout')).prompt,
      );
      expect(new Set(prompts).size).toBe(count);
      expect(count).toBeGreaterThan(150);
    }
  });

  test('an abduction takes any input that gives the output, and an induction any program that does the same', async () => {
    const squared = taskAt({ ...refAt(2), made: [{ program: 'x => x * x + 1', inputs: [3] }] });
    expect(squared.prompt).toBe('Find x: x => x * x + 1 is 10.');
    expect(await scoreOf(squared, '-3')).toBe(1);
    const found = taskAt({ ...refAt(3), made: [{ program: 'x => (x + 1) * 2', inputs: [1, 2, 3] }] });
    expect(await scoreOf(found, 'x => 2 + x * 2')).toBe(1);
    expect(await scoreOf(found, 'x => x + x + 3')).toBe(0);
  });
});

/** A program of training, so that what is refused of it is refused for another reason. */
const ours = (texts: readonly string[]): string =>
  texts.find((text) => splitOf(behaviourOf(programOf(text))) === 'train')!;
const GOOD = ours([3, 4, 5, 6, 7, 8].map((a) => `x => x * 3 + ${a}`));

describe('proposals', () => {
  test('of each kind become tasks that are solved by their own answer', async () => {
    for (const [asks, level, inputs] of [
      [4, 1, '-4'],
      [5, 2, '-4'],
      [6, 3, '-4, 0, 6'],
    ] as const) {
      const proposed = await propose(asks, `${GOOD} for ${inputs}`);
      expect(proposed).toMatchObject({ kind: 'accepted', proposal: { program: GOOD } });
      const { proposal } = proposed as Extract<Proposed, { kind: 'accepted' }>;
      const task = taskAt({ ...refAt(level), made: [proposal] });
      const answer = { 1: String(valueOf(programOf(GOOD), -4)), 2: '-4', 3: GOOD }[level];
      expect(await scoreOf(task, answer)).toBe(1);
    }
  });

  test('that are the same task are one, however they are written', async () => {
    const canonical = async (text: string): Promise<string> =>
      ((await propose(4, text)) as Extract<Proposed, { kind: 'accepted' }>).canonical;
    const [, a] = /\+ (\d)$/.exec(GOOD)!;
    expect(await canonical(`x => ${a} + x * 3 for -4`)).toBe(await canonical(`${GOOD} for -4`));
    expect(await canonical(`x => (x + x + x) + ${a} for -4`)).toBe(await canonical(`${GOOD} for -4`));
    expect(await canonical(`${GOOD} for -5`)).not.toBe(await canonical(`${GOOD} for -4`));
  });

  test.each([
    ['a program that always gives the same', 4, 'x => x * 0 + 7 for 3', /does not depend/],
    ['one that cancels its input', 4, 'x => 7 + x - x for 3', /does not depend/],
    ['one that gives back its input', 5, 'x => x + 0 for 3', /gives back/],
    ['a result that is in the prompt', 4, 'x => x + 7 for 0', /written in its prompt/],
    ['an input that is in the prompt', 5, 'x => x * 3 + 2 for 2', /written in its prompt/],
    ['an input for which the output answers itself', 5, 'x => x * x for 0', /written in its prompt/],
    ['examples that are all the same', 6, 'x => x % 5 for 1, 6, -4', null],
    ['a division by nothing', 4, 'x => x * 2 + 5 % x for 4', /no whole number/],
    ['results without bound', 4, 'x => 99 * 99 * 99 * x for 3', /no whole number/],
  ])('%s makes no task', async (_, level, text, why) => {
    const proposed = await propose(level, text);
    if (why === null) expect(proposed.kind).not.toBe('malformed');
    else expect(proposed).toEqual({ kind: 'invalid', reason: expect.stringMatching(why) as string });
  });

  test.each([
    ['another form', 4, 'x => x + 1'],
    ['no answer', 4, ''],
    ['words behind it', 4, 'x => x + 1 for 3. The answer is 4'],
    ['chance', 4, 'x => Math.random() for 3'],
    ['an error that is thrown', 4, 'x => { throw 1 } for 3'],
    ['an input out of bounds', 4, 'x => x + 1 for 50'],
    ['too few examples', 6, 'x => x + 1 for 3'],
    ['one example three times', 6, 'x => x + 1 for 3, 3, 3'],
  ])('%s is malformed', async (_, level, text) => {
    expect((await propose(level, text)).kind).toBe('malformed');
  });

  test('of a program that is held out are set aside', async () => {
    const heldOut = [1, 2, 3, 4, 5, 6, 7, 8, 9]
      .map((a) => `x => x * 4 + ${a}`)
      .find((text) => splitOf(behaviourOf(programOf(text))) !== 'train')!;
    expect(await propose(4, `${heldOut} for -4`)).toMatchObject({ kind: 'set-aside' });
  });

  test('with the examples of a task that is held out are set aside, of whichever program and in whatever order', async () => {
    const heldOut = new Set(
      (['heldout', 'test'] as const).flatMap((split) =>
        Array.from({ length: environment.taskCount(split, 3) }, (_, index) => {
          const { program, inputs } = taskAt(refAt(3, index, split)).info as {
            program: string;
            inputs: number[];
          };
          return inputs.map((x) => `${x}:${valueOf(programOf(program), x)}`).join();
        }),
      ),
    );
    // Programs of training that agree with a held-out one on what is shown, and differ elsewhere.
    const texts = [2, 3, 4, 5, 6, 7, 8, 9].flatMap((b) =>
      [1, 2, 3, 4, 5].map((a) => `x => (x + ${a}) % ${b} + x`),
    );
    const alike = texts
      .filter((text) => splitOf(behaviourOf(programOf(text))) === 'train')
      .flatMap((text) => PROBES.map((x) => ({ text, inputs: [0, 1, x] })))
      .filter(({ text, inputs }) =>
        heldOut.has(inputs.map((x) => `${x}:${valueOf(programOf(text), x)}`).join()),
      );
    expect(alike.length).toBeGreaterThan(0);
    for (const { text, inputs } of alike)
      for (const shown of [inputs, inputs.toReversed()])
        expect(await propose(6, `${text} for ${shown.join(', ')}`)).toMatchObject({ kind: 'set-aside' });
  });

  test.each([
    ['throws', "x => { throw new Error('no') }", /ends in/],
    ['never ends', 'x => { for (;;); }', /ends in/],
    ['gives text', "x => 'seven'", /no whole number/],
    ['is no program', 'x => (', /./],
  ])('what %s is refused where it is run, whoever wrote it', async (_, source, why) => {
    expect(await outputsOf(source, [1], signal)).toEqual({ fault: expect.stringMatching(why) as string });
  });

  test('what gives another result each time is refused where it is run, whoever wrote it', async () => {
    const source = 'let n = 0; globalThis.f = (x) => x + Date.now() % 1e6 + Math.random()';
    expect(await outputsOf(source, [1], signal)).toHaveProperty('fault');
  });

  test('a task whose own program does not run says nothing of an answer: that is no zero', async () => {
    const task = taskAt({ ...refAt(1), made: [{ program: 'x => x * 99 * 99', inputs: [9] }] });
    await expect(scoreOf(task, '1')).rejects.toMatchObject({ type: 'sandbox-failed', retryable: true });
  });

  test('who asks at the same time is answered by one run, and one who no longer waits does not end it', async () => {
    const gone = new AbortController();
    const left = outputsOf('x => x * 77 + 1', [3], gone.signal);
    const others = Array.from({ length: 8 }, () => outputsOf('x => x * 77 + 1', [3], signal));
    gone.abort(new Error('called off'));
    await expect(left).rejects.toThrow('called off');
    const answers = await Promise.all(others);
    expect(new Set(answers)).toEqual(new Set([[232]]));
    // The very same answer.
    expect(new Set(answers).size).toBe(1);
    await expect(outputsOf('x => x * 77 + 1', [3], gone.signal)).rejects.toThrow('called off');
  });

  test('the same program and calls come to the same in QuickJS', async () => {
    const run = { source: GOOD, name: 'f', calls: PROBES.map((x) => [x]) };
    expect(await runFunction(run, signal)).toEqual(await runFunction(run, signal));
  });

  test('references are shown as they were written, and nothing of their answers', () => {
    const { prompt } = taskAt({ ...refAt(4), made: [{ program: GOOD, inputs: [-4] }] });
    expect(prompt).toBe(`Propose a program to run.\n${GOOD} for -4`);
  });
});
