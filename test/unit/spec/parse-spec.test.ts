import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { curriculumJsonSchema } from '../../../spec/json-schema.ts';
import type { SpecEnvironment } from '../../../core/schema/check.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import type { Split } from '../../../core/refs.ts';
import { METHOD_KINDS } from '../../../core/algorithms/index.ts';
import { environmentWith, toolThat } from '../activities/test-environment.ts';
import { environments as builtIn, problemsOf as problemsAmong } from './problems-of.ts';

// With the library of the tests.
const library = environmentWith([toolThat(() => '')]);
const environments = new Map([...builtIn, [library.name, library]]);

interface Written {
  [field: string]: unknown;
}
const examples = new URL('../../../examples/', import.meta.url);

/** A spec that is taken, new each time. */
function plain(): Written {
  const tasks = () => [{ environment: 'calculator', levels: [1, 2, 3] }];
  return {
    $schema: './curriculum.schema.json',
    reward: {
      components: [
        { verifier: 'exact-match', role: 'outcome' },
        { verifier: 'format', role: 'bonus', weight: 0.05, gatedBy: 'exact-match' },
        { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
      ],
    },
    stages: [
      { kind: 'supervised', name: 'warm-start', tasks: tasks(), graduation: { successAtLeast: 0.4 } },
      { name: 'levels-1-3', tasks: tasks(), maxSteps: 150, graduation: { successAtLeast: 0.95 } },
    ],
    evaluation: { tasks: tasks() },
  };
}

/** The plain spec with something else at a path. */
function withAt(path: (string | number)[], value: unknown): Written {
  const spec = plain();
  let at: Record<string | number, unknown> = spec;
  for (const part of path.slice(0, -1)) at = (at[part] ??= {}) as Record<string | number, unknown>;
  at[path.at(-1)!] = value;
  return spec;
}

const problemsOf = (written: unknown) => problemsAmong(written, environments);

describe('a small environment', () => {
  const counts = { train: 20, heldout: 6, test: 5 };
  const house = { ...library, name: 'little-house', taskCount: (split: Split) => counts[split] };
  const among = new Map([...environments, [house.name, house]]);
  const tasks = [{ environment: 'little-house', levels: [1, 2] }];
  const written = (successAtLeast: number, warm = {}, rl = {}, evaluation = {}) => ({
    reward: { components: [{ verifier: 'exact-match', role: 'outcome' }] },
    stages: [
      { kind: 'supervised', name: 'warm-start', tasks, graduation: { successAtLeast: 0.4, ...warm } },
      { name: 'rl', tasks, maxSteps: 10, graduation: { successAtLeast, ...rl } },
    ],
    evaluation: { tasks, ...evaluation },
  });

  test('is measured with all the tasks that it has, where nobody wrote how many', () => {
    expect(parseSpec(written(0.3), 'run', among)).toMatchObject({
      stages: [{ graduation: { tasksPerLevel: 6 } }, { graduation: { tasks: 12 } }],
      evaluation: { count: 10 },
    });
    expect(parseSpec(plain(), 'run', environments)).toMatchObject({
      stages: [{ graduation: { tasksPerLevel: 64 } }, { graduation: { tasks: 300 } }],
      evaluation: { count: 1000 },
    });
  });

  test('is not measured with fewer tasks than were written', () => {
    expect(
      problemsAmong(written(0.3, { tasksPerLevel: 7 }, { tasks: 13 }, { count: 11 }), among),
    ).toHaveLength(3);
    expect(problemsAmong(written(0.3, { tasksPerLevel: 6 }, { tasks: 12 }, { count: 10 }), among)).toEqual(
      [],
    );
  });

  test('that cannot show its goal and has no room for its expert is refused for both at once, with what to do', () => {
    const turnsOfDemonstrations = new Map([[2, 12]]);
    const small = new Map<string, SpecEnvironment>([
      ...among,
      [house.name, { ...house, turnsOfDemonstrations }],
    ]);
    expect(problemsAmong(written(0.9), small)).toEqual([
      'sampling.maxTurns: 8 turns leave no room for the demonstrations of little-house:2, the shortest of which takes 12: write "maxTurns": 12 or more (maxTurns is not written, and 8 by default)',
      expect.stringContaining(
        'let the environment have more held-out tasks, measure less often, or lower this',
      ),
    ]);
  });
});

describe('a spec that says what it should', () => {
  const names = readdirSync(examples).filter(
    (name) => name.endsWith('.json') && !name.endsWith('.schema.json'),
  );

  test.each(names)('like examples/%s is taken', (name) => {
    expect(
      parseSpec(JSON.parse(readFileSync(new URL(name, examples), 'utf8')), 'my-run', environments),
    ).toMatchObject({ run: 'my-run' });
  });

  test('is filled in, and its levels become arms', () => {
    const spec = parseSpec(plain(), 'my-run', environments);
    const arms = [1, 2, 3].map((level) => ({ environment: 'calculator', level }));
    expect(spec.stages[0]).toMatchObject({ kind: 'supervised', arms, minibatch: 64 });
    expect(spec.stages[1]).toMatchObject({
      kind: 'rl',
      arms,
      numGenerations: 16,
      collapse: { action: 'rollback' },
      retryFailures: 0.125,
      mostTries: 6,
    });
    expect(spec.reward.components[0]).toMatchObject({ gatedBy: null });
    expect(spec).not.toHaveProperty('$schema');
  });

  test('gives a model from scratch its defaults', () => {
    const { model } = parseSpec(withAt(['model', 'layers'], 2), 'my-run', environments);
    expect(model).toMatchObject({
      kind: 'scratch',
      shape: { layers: 2, hiddenSize: 128, tieEmbeddings: true },
    });
  });

  test.each([
    ['my-model', { kind: 'from', run: 'my-model', step: null }],
    ['run-7.2@120', { kind: 'from', run: 'run-7.2', step: 120 }],
  ])('may begin with the checkpoint %s, and then without a warm start', (from, model) => {
    const written = withAt(['model', 'from'], from);
    const [, stage] = written['stages'] as Written[];
    const kinds = (spec: Written): string[] => {
      const parsed = parseSpec(spec, 'my-run', environments);
      expect(parsed).toMatchObject({ model });
      return parsed.stages.map(({ kind }) => kind);
    };
    expect(kinds(written)).toEqual(['supervised', 'rl']);
    expect(kinds({ ...written, stages: [stage] })).toEqual(['rl']);
  });

  test('may say which dialect a checkpoint speaks', () => {
    const dialect = { name: 'search-r1', tool: 'calculator', argument: 'expression', date: '2026-01-31' };
    const { model } = parseSpec(withAt(['model'], { from: 'mine', dialect }), 'my-run', environments);
    expect(model).toEqual({ kind: 'from', run: 'mine', step: null, dialect });
    const scratch = parseSpec(withAt(['model'], { dialect: { name: 'gradus' } }), 'my-run', environments);
    expect(scratch.model).toEqual(parseSpec(plain(), 'my-run', environments).model);
  });

  test('may sample with a cut that has a bound', () => {
    const { sampling } = parseSpec(withAt(['sampling'], { topK: 20, topP: 0.9 }), 'my-run', environments);
    expect(sampling).toMatchObject({ topK: 20, topP: 0.9 });
    // What is stored of a spec without several calls in a turn is what it was.
    expect(sampling).not.toHaveProperty('maxParallelCalls');
  });

  test('may name its run', () => {
    expect(parseSpec({ ...plain(), run: 'mine' }, 'workflow-7', environments).run).toBe('mine');
  });
});

test('examples/curriculum.schema.json is the schema; `npm run schema` writes it', () => {
  expect(readFileSync(new URL('curriculum.schema.json', examples), 'utf8')).toBe(curriculumJsonSchema());
});

test('in the schema for editors a stage is one of its kinds, told by a constant, and so is a method', () => {
  interface JsonSchema {
    oneOf?: JsonSchema[];
    items?: JsonSchema;
    properties?: Record<string, JsonSchema>;
    required?: string[];
    const?: string;
    description?: string;
    additionalProperties?: boolean;
  }
  const { properties } = JSON.parse(curriculumJsonSchema()) as JsonSchema;
  const kinds = properties!['stages']!.items!.oneOf!;
  expect(kinds.map((kind) => kind.properties!['kind']!.const)).toEqual(['rl', 'supervised', 'reward']);
  for (const kind of kinds) {
    expect(kind.additionalProperties).toBe(false);
    expect(kind.description).toBeDefined();
  }
  // What says no kind is RL.
  expect(kinds.map(({ required }) => required!.includes('kind'))).toEqual([false, true, true]);
  const methods = kinds[0]!.properties!['algorithm']!.oneOf!;
  expect(methods.map((method) => method.properties!['kind']!.const)).toEqual([...METHOD_KINDS, 'own']);
  expect(methods.filter(({ required }) => !required?.includes('kind'))).toHaveLength(1);
});

test('a spec with an adapter or settings of the learner hands them on, with the rest of them filled in', () => {
  const adapted = parseSpec(
    withAt(['model', 'lora'], { rank: 4, targetModules: ['q_proj'] }),
    'r',
    environments,
  );
  expect(adapted.lora).toEqual({ rank: 4, alpha: 16, targetModules: ['q_proj'], rsLora: false });
  expect(adapted.model).not.toHaveProperty('shape.lora');
  const computed = parseSpec(withAt(['learner'], { precision: 'bfloat16' }), 'r', environments);
  expect(computed.lora).toBeUndefined();
  expect(computed.learner).toEqual({
    precision: 'bfloat16',
    gradientCheckpointing: false,
    microBatchTokens: 0,
  });
});

test.each([
  [['model', 'lora'], { targetModules: ['lm_head'] }, 'model.lora.targetModules'],
  [['model', 'lora'], { rank: 0 }, 'model.lora.rank'],
  [['model', 'lora'], { dropout: 0.1 }, 'dropout'],
  [['learner'], { precision: 'float16' }, 'learner.precision'],
  [['learner'], { microBatchTokens: -1 }, 'learner.microBatchTokens'],
  [['learner'], { maxShardBytes: 0 }, 'learner.maxShardBytes'],
  [['learner'], { saveOptimizerEvery: 0 }, 'learner.saveOptimizerEvery'],
])('a spec with %j: %j is refused', (path, value, named) => {
  expect(problemsOf(withAt(path, value)).join()).toContain(named);
});

describe('a spec is refused, with the path and what to write,', () => {
  test.each<[string, Written, string]>([
    [
      'for a shape beside a checkpoint',
      withAt(['model'], { from: 'mine', layers: 2 }),
      'model.layers: is what the checkpoint mine says: leave it out, or leave out "from"',
    ],
    [
      'for an unknown dialect',
      withAt(['model'], { from: 'mine', dialect: { name: 'lama3' } }),
      'model.dialect.name: must be "gradus" or "hermes" or "llama3" or "pythonic" or "mistral" or "deepseek" or "search-r1" or "retool" or "own"; did you mean "llama3"?',
    ],
    [
      'for a dialect that is none',
      withAt(['model'], { from: 'mine', dialect: { name: 'esperanto' } }),
      'model.dialect.name: must be "gradus" or "hermes" or "llama3" or "pythonic" or "mistral" or "deepseek" or "search-r1" or "retool" or "own"',
    ],
    [
      'for a dialect that a model from scratch does not speak',
      withAt(['model'], { dialect: { name: 'hermes' } }),
      'model.dialect.name: a model from scratch speaks gradus, with a tokenizer of its own: leave it out, or name a checkpoint in model.from that speaks hermes',
    ],
    [
      'for a tool where a dialect calls them by name',
      withAt(['model'], { from: 'mine', dialect: { name: 'hermes', tool: 'calculator' } }),
      'model.dialect.tool: has no effect for hermes; search-r1, retool read it',
    ],
    [
      'for tools that the chat template describes anyway',
      withAt(['model'], { from: 'mine', dialect: { name: 'hermes', describeTools: true } }),
      'model.dialect.describeTools: has no effect for hermes; gradus read it',
    ],
    [
      'for a day that is none',
      withAt(['model'], { from: 'mine', dialect: { name: 'llama3', date: 'today' } }),
      'model.dialect.date: Invalid ISO date',
    ],
    [
      'for a checkpoint that is no name',
      withAt(['model', 'from'], './mine'),
      'model.from: name a run, or RUN@STEP; an imported model is the run of its name',
    ],
    [
      'for a model from scratch without a warm start',
      { ...plain(), stages: [(plain()['stages'] as Written[])[1]] },
      'stages[0].kind: a model from scratch cannot act yet: begin with a stage { "kind": "supervised", "name": "warm-start", … }, with stored episodes, a search or rejection sampling (collect stored or tree, or rft), or name a checkpoint in model.from',
    ],
    [
      'for a warm start beside the stages, as specs once had it',
      { ...plain(), warmStart: { tasks: [{ environment: 'calculator', levels: [1] }], minibatch: 32 } },
      'warmStart: is a stage: take it out, and put this at the beginning of "stages": {"kind":"supervised","name":"warm-start","tasks":[{"environment":"calculator","levels":[1]}],"minibatch":32}',
    ],
    [
      'for the same in the names of other trainers',
      { ...plain(), warm_start: { minibatch: 32 } },
      'warm_start: is a stage: take it out, and put this at the beginning of "stages": {"kind":"supervised","name":"warm-start","minibatch":32}',
    ],
    [
      'for an unknown field',
      { ...plain(), retentoin: {} },
      'retentoin: unknown field; did you mean "retention"?',
    ],
    [
      'for an unknown field deep inside',
      withAt(['stages', 1, 'algorithm'], { clipRatioHihg: 1 }),
      'stages[1].algorithm.clipRatioHihg: unknown field; did you mean "clipRatioHigh"?',
    ],
    [
      'for an unknown field in a list',
      withAt(['reward', 'components', 1, 'gated'], 'format'),
      'reward.components[1].gated: unknown field; did you mean "gatedBy"?',
    ],
    [
      'for a field that is like no other',
      withAt(['sampling', 'beamWidth'], 4),
      'sampling.beamWidth: unknown field; valid: temperature, topK, topP, maxTurns, maxParallelCalls, maxCompletionTokens',
    ],
    [
      'for an environment that nobody has',
      withAt(['evaluation', 'tasks', 0, 'environment'], 'calculater'),
      'evaluation.tasks[0].environment: no environment "calculater"; did you mean "calculator"?',
    ],
    [
      'for an environment like no other',
      withAt(['stages', 0, 'tasks', 0, 'environment'], 'browser'),
      `stages[0].tasks[0].environment: no environment "browser"; valid: ${[...environments.keys()].join(', ')}. ` +
        'To use one of your own, name its module in package.json, as "gradus": {"environments": ' +
        '["./my-environment.ts"]}, or in GRADUS_ENVIRONMENTS, which takes precedence. Where "npm run dev" runs, start it again then',
    ],
    [
      'for a level that the environment lacks',
      withAt(['stages', 1, 'tasks', 0, 'levels'], [1, 9]),
      'stages[1].tasks[0].levels[1]: "calculator" has no level 9; valid: 1, 2, 3, 4, 5',
    ],
    [
      'for a level that is named twice',
      withAt(['stages', 1, 'tasks', 0, 'levels'], [1, 2, 1]),
      'stages[1].tasks[0].levels[2]: calculator:1 is named twice; its tasks would count twice',
    ],
    [
      'for a verifier that the environment lacks',
      withAt(['reward', 'components', 2, 'verifier'], 'tool-shapin'),
      'reward.components[2].verifier: environment "calculator" has no verifier "tool-shapin"; did you mean "tool-shaping"?',
    ],
    [
      'for a word that is none of the possible ones',
      withAt(['stages', 1, 'plateau'], { action: 'pause' }),
      'stages[1].plateau.action: must be "advance" or "stop" or "ask"',
    ],
    [
      'for a graduation that no result can reach',
      withAt(['stages', 1, 'graduation'], { successAtLeast: 0.999, tasks: 300 }),
      'stages[1].graduation.successAtLeast: 300 tasks at 0.9 confidence in 15 evaluations show at most 0.9834: raise graduation.tasks, measure less often, or lower this',
    ],
    [
      'for a cut of the sampling that no bound is known of',
      withAt(['sampling', 'topP'], 0.9),
      'sampling.topP: may leave the whole vocabulary in the sampling mask, which is stored with each token: also give a topK of 2 to 64',
    ],
    [
      'for a cut of the sampling that keeps too much to write down',
      withAt(['sampling', 'topK'], 65),
      'sampling.topK: must be at most 64: the sampling mask of each token is stored with it; 0 samples among all tokens',
    ],
    [
      'for several calls in a turn that ends with its call',
      withAt(['sampling', 'maxParallelCalls'], 2),
      'sampling.maxParallelCalls: a turn of gradus ends with its call, so that it has no second one: leave it out, or take hermes, llama3, pythonic, mistral, deepseek as model.dialect',
    ],
    [
      'for a cut of the sampling that leaves no choice',
      withAt(['sampling', 'topK'], 1),
      'sampling.topK: of 1 leaves nothing to choose and nothing to train: give 2 or more',
    ],
    [
      'for an importance weight that is never 1',
      withAt(['stages', 1, 'algorithm'], { importanceCap: 0.5 }),
      'stages[1].algorithm.importanceCap: below 1 also weighs down tokens of the policy itself: give 1 or more, or 0 to leave the weight out',
    ],
    [
      'for an importance weight that masks what differs by rounding',
      withAt(['stages', 1, 'algorithm'], { importanceCap: 1, importanceRule: 'mask' }),
      'stages[1].algorithm.importanceCap: of 1 would mask every token whose weight is not 1 to the last bit: give more (2, say), or importanceRule truncate',
    ],
    [
      'for an outcome that is worth nothing',
      withAt(['reward', 'components', 0, 'weight'], 0),
      'reward.components[0].weight: the outcome would be worth nothing: give it a weight above 0',
    ],
    [
      'for fewer tasks than levels',
      withAt(['stages', 1, 'graduation'], { successAtLeast: 0, tasks: 2 }),
      'stages[1].graduation.tasks: fewer tasks than the 3 levels they are spread over',
    ],
    [
      'for heads that cannot be shared',
      withAt(['model', 'keyValueHeads'], 3),
      'model.keyValueHeads: 4 attention heads cannot be shared by 3 key-value heads: one must divide the other',
    ],
    [
      'for a head size that the decoder cannot run',
      withAt(['model', 'headSize'], 24),
      'model.headSize: must be a multiple of 16: the decoder cannot run other ones',
    ],
    [
      'for no room for a prompt',
      withAt(['sampling', 'maxCompletionTokens'], 256),
      'sampling.maxCompletionTokens: leaves no room for a prompt in model.maxPositions = 256',
    ],
    [
      'for a gate that does not exist',
      withAt(['reward', 'components', 1, 'gatedBy'], 'exact-mtach'),
      'reward.components[1].gatedBy: "exact-mtach" is no other component; did you mean "exact-match"?',
    ],
    [
      'for a component that gates itself',
      withAt(['reward', 'components', 1, 'gatedBy'], 'format'),
      'reward.components[1].gatedBy: "format" is no other component; valid: exact-match, tool-shaping',
    ],
    [
      'for an outcome that is gated',
      withAt(['reward', 'components', 0, 'gatedBy'], 'format'),
      'reward.components[0].gatedBy: the outcome cannot be gated: it decides',
    ],
    [
      'for two outcomes',
      withAt(['reward', 'components', 1], { verifier: 'format', role: 'outcome' }),
      'reward.components: exactly one component must have role "outcome"; 2 have',
    ],
    [
      'for no outcome',
      withAt(['reward', 'components', 0, 'role'], 'bonus'),
      'reward.components: exactly one component must have role "outcome"; 0 have',
    ],
    [
      'for the same verifier twice',
      withAt(['reward', 'components', 2, 'verifier'], 'format'),
      'reward.components[2].verifier: "format" is already a component',
    ],
    [
      'for a stage named like a phase',
      withAt(['stages', 1, 'name'], 'initialize'),
      'stages[1].name: "initialize" is reserved for a part of every run; choose another',
    ],
    [
      "for a stage named like another one's evaluation",
      withAt(['stages', 1, 'name'], 'easy.held-out'),
      'stages[1].name: "easy.held-out" is reserved for a part of every run; choose another',
    ],
  ])('%s', (_, written, problem) => {
    expect(problemsOf(written)).toEqual([problem]);
  });

  test('for two stages of one name', () => {
    const spec = plain();
    const [warmStart, stage] = spec['stages'] as Written[];
    expect(problemsOf({ ...spec, stages: [warmStart, stage, stage] })).toEqual([
      'stages[2].name: "levels-1-3" is the name of an earlier stage; names must differ, and not by case alone',
    ]);
  });

  test('for more tasks than a family has, where each must be another', () => {
    const spec = plain();
    const [warmStart, stage] = spec['stages'] as Written[];
    const tasks = [{ environment: 'library', levels: [1, 2] }];
    const written = {
      ...spec,
      reward: { components: [{ verifier: 'exact-match', role: 'outcome' }] },
      stages: [
        { ...warmStart, tasks, graduation: { successAtLeast: 0.4, tasksPerLevel: 101 } },
        { ...stage, tasks, graduation: { successAtLeast: 0.9, tasks: 201 } },
      ],
      evaluation: { tasks, count: 202 },
    };
    expect(problemsOf(written).toSorted()).toEqual([
      'evaluation.count: asks for 101 test tasks of library:1, which has 100: write at most "count": 200',
      'stages[0].graduation.tasksPerLevel: asks for 101 heldout tasks of library:1, which has 100: write at most "tasksPerLevel": 100',
      'stages[1].graduation.tasks: asks for 101 heldout tasks of library:1, which has 100: write at most "tasks": 200',
    ]);
  });

  test('for an environment of one’s own that nobody named, once with what there is and where it is to be named', () => {
    const spec = JSON.parse(JSON.stringify(plain()).replaceAll('"calculator"', '"little-house"')) as unknown;
    const [first, ...others] = problemsOf(spec).filter((line) => line.includes('no environment'));
    expect(first).toContain(`valid: ${[...environments.keys()].join(', ')}. `);
    expect(first).toContain('package.json, as "gradus": {"environments": ["./my-environment.ts"]}');
    expect(first).toContain('GRADUS_ENVIRONMENTS');
    expect(first).toContain('"npm run dev" runs, start it again');
    expect(others).toEqual([
      'stages[1].tasks[0].environment: no environment "little-house"',
      'evaluation.tasks[0].environment: no environment "little-house"',
    ]);
  });

  test('for everything at once', () => {
    const spec = withAt(['model'], { headSize: 20, keyValueHeads: 3 });
    expect(
      problemsOf({ ...spec, evaluation: { tasks: [{ environment: 'nope', levels: [1] }] } }),
    ).toHaveLength(3);
  });

  test.each([[null], [[]], ['calculator'], [undefined]])('when it is %j', (written) => {
    expect(problemsOf(written)[0]).toMatch(/^\(the curriculum spec\): /u);
  });

  test('for an Adam that would divide by zero', () => {
    expect(problemsOf(withAt(['stages', 1, 'optimizer'], { beta2: 1 }))[0]).toContain(
      'stages[1].optimizer.beta2: ',
    );
  });

  test.each([
    'seed',
    'reward.components.0.weight',
    'stages.1.maxSteps',
    'stages.0.graduation.successAtLeast',
  ])('for a number at %s that is none, too small or a text', (path) => {
    const parts = path.split('.').map((part) => (/^\d+$/u.test(part) ? Number(part) : part));
    for (const bad of [-1, '3', null, Number.NaN]) {
      const shown = path.replaceAll(/\.(\d+)/gu, '[$1]');
      expect(problemsOf(withAt(parts, bad))[0]).toContain(`${shown}: `);
    }
  });
});

test('a graduation is taken exactly when a perfect result would pass it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 3, max: 2000 }),
      fc.double({ min: 0.5, max: 0.9999, noNaN: true }),
      fc.double({ min: 0.9, max: 1, noNaN: true }),
      (tasks, confidence, successAtLeast) => {
        const written = withAt(['stages', 1, 'graduation'], { tasks, confidence, successAtLeast });
        // Of 15 evaluations, one in which all tasks are solved.
        const reachable = ((1 - confidence) / 15) ** (1 / tasks) >= successAtLeast;
        if (reachable) expect(parseSpec(written, 'run', environments).stages).toHaveLength(2);
        else expect(problemsOf(written)).toHaveLength(1);
      },
    ),
  );
});
