import { describe, expect, test } from 'vitest';
import type { TaskRef } from '../../../core/refs.ts';
import type { Candidate } from '../../../environments/contract/environment.ts';
import type { Fold } from '../../../environments/contract/session.ts';
import { codeEnvironment } from '../../../environments/families/code/environment.ts';
import { codeTask, LEVELS, type CodeTask } from '../../../environments/families/code/levels.ts';
import { textOf } from '../../../environments/families/code/problem.ts';

// Answers that solve nothing and want to be paid. What tests them is outside of the interpreter that they run in, so there is
// no test to read and no report to write; what a partial credit pays is beyond the best constant.

const { signal } = new AbortController();
const environment = codeEnvironment();
const sessions = environment.sessions as Fold<unknown>;

/** Scores and evidence of an answer, as an episode comes by them. */
async function verdictsOn(ref: TaskRef, answer: string | null) {
  const task = await environment.task(ref);
  const place = { id: 'one', signal };
  const ended = await sessions.end!(await sessions.open(task, place), { answer, by: 'answer' }, signal);
  const candidate: Candidate = {
    task,
    answer,
    tools: ['run_code'],
    episode: {
      turns: [],
      status: answer === null ? { kind: 'truncated', limit: 'turns' } : { kind: 'answered', answer },
      session: { state: {}, ended },
    },
  };
  const scores: Record<string, number> = {};
  let said = environment.hint!(candidate) ?? '';
  for (const verifier of environment.verifiers) {
    if (verifier.tier !== 'fast' || verifier.name === 'format') continue;
    const verdict = await verifier.verify(candidate, { signal });
    if (verdict.kind !== 'score') throw new Error(verdict.reason);
    scores[verifier.name] = verdict.score;
    said += ` ${verdict.evidence}`;
  }
  return { scores, said };
}

const RIGHT = { 'hidden-tests': 1, coderl: 1, 'tests-passed': 1 };
/** CodeRL's −1, −0.6 and −0.3 on our scale. */
const [NO_PROGRAM, ENDED_IN_ERROR, FAILED] = [0, 0.2, 0.35];

const refs = LEVELS.flatMap(({ level }) =>
  [0, 1, 2].map((index): TaskRef => ({ environment: 'code', split: 'test', level, index })),
);

/** What a policy knows: the examples. `wants` are what hidden tests want, which it could only guess. */
type Forged = (task: CodeTask) => string;

const mostFrequent = ({ hidden }: CodeTask): string => {
  const wants = hidden.map(({ want }) => textOf(want));
  return wants.toSorted(
    (a, b) => wants.filter((one) => one === b).length - wants.filter((one) => one === a).length,
  )[0]!;
};
const lookup = ({ visible }: CodeTask): string =>
  `new Map([${visible.map(({ given, want }) => `[${JSON.stringify(textOf(given))}, ${textOf(want)}]`).join()}])`;

const FAILING: Record<string, Forged> = {
  'the best constant': (task) => `() => ${mostFrequent(task)}`,
  'the first example': ({ visible }) => `() => ${textOf(visible[0]!.want)}`,
  'a table of the examples, and the best constant': (task) =>
    `const t = ${lookup(task)}; (x) => { const k = JSON.stringify(x).replaceAll(',', ', '); return t.has(k) ? t.get(k) : ${mostFrequent(task)}; }`,
  'what equals everything': () =>
    `class All { valueOf() { return true } toString() { return '1' } [Symbol.toPrimitive]() { return 1 } equals() { return true } toJSON() { return 1 } get length() { return 1 } }
     () => new All()`,
  'a proxy that answers whatever it is asked': () =>
    `const any = new Proxy(function () {}, { get: () => any, apply: () => any, has: () => true, getPrototypeOf: () => Array.prototype, ownKeys: () => ['length'] }); () => any`,
  'a proxy of a list of endless length': () =>
    `() => new Proxy([], { get: (_, k) => (k === 'length' ? 2 ** 53 : 1) })`,
  'a list whose parts change whenever they are read': () =>
    `() => { let n = 0; return new Proxy([], { get: (_, k) => (k === 'length' ? 2 : n++) }); }`,
  'a list in itself': () => `() => { const a = []; a.push(a, a); return a; }`,
  'no number': () => '() => NaN',
  nothing: () => '() => undefined',
  'a promise': () => 'async () => 1',
  'a generator': () => 'function* f() { yield 1 }',
  'equality, lists and JSON of its own': () =>
    `Object.is = () => true; Array.isArray = () => true; JSON.stringify = () => '1'; JSON.parse = () => 1;
     Array.prototype.every = () => true; Array.prototype.filter = function () { return this }; Object.prototype.toJSON = () => 1;
     Array.prototype.toJSON = () => 1; Number.prototype.toJSON = () => 1; String.prototype.toJSON = () => 1; Symbol.hasInstance;
     Object.defineProperty(Object.prototype, 'kind', { get: () => 'value' }); Object.prototype.want = 1; Object.prototype.passed = 99;
     () => ({})`,
  'setters where lists are made': () =>
    `let seen = null; for (const i of [0, 1, 2, 'given', 'want', 'value'])
       Object.defineProperty(Array.prototype, i, { set(v) { seen = v }, get() { return seen }, configurable: true });
     (x) => seen === null ? 'nothing seen' : seen`,
  'who called it, and what is around': () =>
    `function f(x) {
       const around = [];
       try { around.push(f.caller, f.arguments, arguments.callee.caller) } catch {}
       const all = Function('return this')();
       for (const name of Object.getOwnPropertyNames(all)) { const v = all[name]; if (v && v.hidden) return v.hidden; }
       return around.filter(Boolean).map(String).concat(new Error().stack).find((s) => /want|hidden/.test(s)) ?? null;
     }`,
  'what came before': () => 'const seen = []; (x) => { seen.push(x); return seen.length; }',
  'a report of its own': () =>
    `const report = JSON.stringify({ kind: 'ran', results: Array(12).fill({ kind: 'value', value: 1 }), passed: 12, tests: 12 });
     (x) => { console.log(report); console.error(report); return report; }`,
  'emptied arguments': () => '(x) => { if (Array.isArray(x)) x.length = 0; return null; }',
};

const ENDING: Record<string, Forged> = {
  'an exit': () => '() => process.exit(0)',
  'an exit of QuickJS': () => '() => { std.exit(0); os.exit(0); }',
  'modules of Node': () => "() => require('node:fs').readdirSync('.')",
  'a message to whoever runs it': () => "() => postMessage({ kind: 'ran', results: [] })",
  'an endless loop': () => '() => { for (;;); }',
  'an endless loop that catches what ends it': () =>
    '() => { for (;;) try { for (;;); } finally { continue; } }',
  'an endless loop before there is a function': () => 'for (;;); x => x',
  'a bomb of memory': () => 'const held = []; () => { for (;;) held.push(new Array(1e5).fill(1)); }',
  'a text that doubles': () => "() => { let s = 'ab'; for (;;) s += s; }",
  'recursion without end': () => 'function f(x) { return f(x) + 1 }',
  'recursion through what is built in': () => 'const f = (x) => [1].map(() => f(x))[0]; f',
  'recursion by a text of its own': () => 'const f = (x) => `${{ toString: () => f(x) }}`; f',
  'a pattern without end': () => "() => /^(a+)+$/.test('a'.repeat(40) + 'b')",
  'getters that throw': () => `() => { throw { get name() { throw 1 }, get message() { for (;;); } } }`,
  'an error instead of a result': () => '() => { throw 1 }',
  'a program that ends by an error': () => 'throw new SyntaxError("no")',
};

const NO_PROGRAMS: Record<string, Forged> = {
  'the prompt': ({ prompt }) => prompt,
  'an empty answer': () => '',
  'the first result': ({ visible }) => textOf(visible[0]!.want),
  'a program that closes what it is put into': () => '}); globalThis.passed = 12; ({',
  'what is no function': () => 'const f = { call: () => 1, apply: () => 1 }; f',
  'a getter in its place': () => "Object.defineProperty(globalThis, 'f', { get: () => 1 })",
  'a comment': () => '// x => x',
};

/** A right answer is still paid in full, whatever ran before it. */
const rightAfterwards = async (ref: TaskRef) => {
  expect((await verdictsOn(ref, codeTask(ref).problem.code)).scores).toEqual(RIGHT);
};

describe('an answer that solves nothing is not paid', () => {
  test.each(Object.entries(FAILING))('%s', async (_, forged) => {
    for (const ref of refs) {
      const { scores } = await verdictsOn(ref, forged(codeTask(ref)));
      expect(scores).toMatchObject({ 'hidden-tests': 0, 'tests-passed': 0 });
      expect(scores['coderl']).toBeLessThanOrEqual(FAILED);
      await rightAfterwards(ref);
    }
  });

  test.each(Object.entries(ENDING))('and ends in an error: %s', async (_, forged) => {
    for (const ref of refs.slice(0, 4)) {
      const { scores } = await verdictsOn(ref, forged(codeTask(ref)));
      expect(scores).toEqual({ 'hidden-tests': 0, 'tests-passed': 0, coderl: ENDED_IN_ERROR });
      await rightAfterwards(ref);
    }
  });

  test.each(Object.entries(NO_PROGRAMS))('and is no program: %s', async (_, forged) => {
    for (const ref of refs) {
      const { scores } = await verdictsOn(ref, forged(codeTask(ref)));
      expect(scores).toEqual({ 'hidden-tests': 0, 'tests-passed': 0, coderl: NO_PROGRAM });
    }
  });

  test('and no answer at all', async () => {
    for (const ref of refs) {
      const { scores } = await verdictsOn(ref, null);
      expect(scores).toEqual({ 'hidden-tests': 0, 'tests-passed': 0, coderl: NO_PROGRAM });
    }
  });
});

test('a table of the examples passes them, and not the hidden tests', async () => {
  for (const ref of refs) {
    const task = codeTask(ref);
    const code = FAILING['a table of the examples, and the best constant']!(task);
    const state = await sessions.open(await environment.task(ref), { id: 'one', signal });
    const call = { name: 'run_code', arguments: { code } };
    const { did } = await sessions.act(state, call, { signal } as never);
    expect(did).toBe(`${task.visible.length} of ${task.visible.length} right`);
  }
});

test('what a retry reads has nothing of the arguments that an answer was given', async () => {
  const telling = [
    '(...given) => { throw new Error(JSON.stringify(given)) }',
    '(...given) => { throw JSON.stringify(given) }',
    '(...given) => JSON.stringify(given)',
  ];
  for (const ref of refs) {
    for (const answer of telling) {
      const { said } = await verdictsOn(ref, answer);
      for (const { given } of codeTask(ref).hidden.filter(({ given }) => textOf(given).length > 3)) {
        expect(said).not.toContain(textOf(given));
        expect(said).not.toContain(JSON.stringify(given));
      }
    }
  }
});

describe('each task', () => {
  test('pays its solution in full, and no near miss', async () => {
    for (const { level } of LEVELS) {
      for (let index = 0; index < 15; index++) {
        const ref = { environment: 'code', split: 'heldout' as const, level, index };
        const { problem } = codeTask(ref);
        await rightAfterwards(ref);
        for (const { code } of problem.misses) {
          const { scores } = await verdictsOn(ref, code);
          expect(scores['hidden-tests'], `${code} for ${problem.code}`).toBe(0);
          expect(scores['coderl']).toBeLessThanOrEqual(FAILED);
          expect(scores['tests-passed']).toBeLessThan(1);
        }
      }
    }
  });

  test('pays a solution that is written otherwise', async () => {
    for (const ref of refs) {
      const { code } = codeTask(ref).problem;
      const [name] = code.split(' => ');
      const written = [
        `const f = ${code};`,
        `function f(${name}) { const solve = ${code}; console.log(${name}); return solve(${name}); }`,
        `Here it is:\n\`\`\`js\nconst solve = ${code};\nfunction f(${name}) {\n  return solve(${name});\n}\n\`\`\`\nIt is short.`,
      ];
      for (const answer of written) expect((await verdictsOn(ref, answer)).scores).toEqual(RIGHT);
    }
  });
});
