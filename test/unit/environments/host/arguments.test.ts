import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test, vi } from 'vitest';
import { assertSchema, checkArguments, checkJson } from '../../../../environments/host/arguments.ts';
import type { JsonSchema, Tool } from '../../../../environments/contract/environment.ts';

const tool = (schema: JsonSchema) => ({ arguments: schema }) as Tool;

test('what every object has is no argument', async () => {
  const properties = { constructor: { type: 'string' } };
  expect(await checkArguments(tool({ type: 'object', properties }), {})).toEqual({ value: {} });
  const needed = tool({ type: 'object', properties, required: ['constructor'] });
  expect(await checkArguments(needed, {})).toMatchObject({ message: expect.any(String) as string });
  expect(await checkArguments(needed, { constructor: 'x' })).toEqual({ value: { constructor: 'x' } });
});

test('equal schemas are compiled once, and the compiler keeps none', async () => {
  const compile = vi.spyOn(Ajv2020.prototype, 'compile');
  const remove = vi.spyOn(Ajv2020.prototype, 'removeSchema');
  const schema = (n: number): JsonSchema => ({ type: 'object', properties: { n: { const: n } } });
  for (let task = 0; task < 3; task++) {
    for (const n of [1, 2]) {
      assertSchema(schema(n));
      expect(await checkArguments(tool(schema(n)), { n })).toEqual({ value: { n } });
      expect(await checkArguments(tool(schema(n)), { n: 3 })).toMatchObject({ at: 'n' });
    }
  }
  expect(compile).toHaveBeenCalledTimes(2);
  expect(remove.mock.calls).toEqual(compile.mock.calls.map(([compiled]) => [compiled]));
  vi.restoreAllMocks();
});

const twice = (schema: JsonSchema['x']) => [schema, schema];
/** Each level is checked twice by the one above it. */
const doubling = (levels: number): JsonSchema => ({
  type: 'object',
  $defs: Object.fromEntries(
    Array.from({ length: levels }, (_, n) => [
      `level${n}`,
      n + 1 < levels ? { allOf: twice({ $ref: `#/$defs/level${n + 1}` }) } : { type: 'string' },
    ]),
  ),
  properties: { text: { $ref: '#/$defs/level0' } },
});
const nested = (levels: number): JsonSchema => ({
  type: 'object',
  properties: levels === 0 ? {} : { one: nested(levels - 1) },
});

test.each<[string, JsonSchema, string]>([
  // Without a limit they take minutes and hours, and twice as long with each further letter, or level.
  [
    'a pattern that backtracks',
    { type: 'object', properties: { text: { pattern: '^(a+)+$' } } },
    `${'a'.repeat(40)}!`,
  ],
  ['references that double at each level', doubling(40), 'text'],
])('a server’s schema with %s does not keep whoever checks by it', async (_, schema, text) => {
  await expect(checkArguments(tool(schema), { text })).rejects.toThrow(/took longer than 5 s/u);
  // The next one is checked as if nothing had been.
  const honest = { type: 'object', properties: { text: { pattern: '^a+$' } } } as const;
  expect(await checkArguments(tool(honest), { text: 'aaa' })).toMatchObject({ value: { text: 'aaa' } });
  expect(await checkArguments(tool(honest), { text })).toMatchObject({ at: 'text' });
});

test('a schema that has reached the limit is refused at once from then on, whoever checks by it', async () => {
  const schema = { type: 'object', properties: { text: { pattern: '^(b+)+$' } } } as const;
  const slow = tool(schema);
  expect(await checkArguments(slow, { text: 'bb' })).toMatchObject({ value: {} });
  await expect(checkArguments(slow, { text: `${'b'.repeat(40)}!` })).rejects.toThrow(/longer than 5 s/u);
  const compile = vi.spyOn(Ajv2020.prototype, 'compile');
  for (const one of [slow, tool({ ...schema })]) {
    await expect(checkArguments(one, { text: 'bb' })).rejects.toThrow(/longer than 5 s/u);
  }
  expect(() => assertSchema({ ...schema })).toThrow(/longer than 5 s/u);
  expect(compile).not.toHaveBeenCalled();
  vi.restoreAllMocks();
});

test('checks that take long come one in a turn of the event loop, so that what comes in between is heard', async () => {
  const letters = ['c', 'd', 'e'];
  let turns = 0;
  const turning = setInterval(() => turns++, 1);
  const heard: number[] = [];
  await Promise.all(
    letters.map(async (letter) => {
      const schema = tool({ type: 'object', properties: { text: { pattern: `^(${letter}+)+$` } } });
      const checking = checkArguments(schema, { text: `${letter.repeat(40)}!` });
      await expect(checking).rejects.toThrow(/longer than 5 s/u);
      heard.push(turns);
    }),
  );
  clearInterval(turning);
  expect(new Set(heard).size).toBe(letters.length);
});

test('a schema that cannot be compiled says so without a word on the standard error, and is not compiled again', () => {
  const said = vi.spyOn(console, 'error').mockReturnValue(undefined);
  const compile = vi.spyOn(Ajv2020.prototype, 'compile');
  const consts = Array.from({ length: 3000 }, (_, n) => ({ const: n }));
  const errors = [1, 2].map(() => {
    try {
      assertSchema({ type: 'object', properties: { n: { oneOf: consts } } });
      return null;
    } catch (error) {
      return error;
    }
  });
  expect(errors[0]).toBeInstanceOf(Error);
  expect(errors[1]).toBe(errors[0]);
  expect(compile).toHaveBeenCalledOnce();
  expect(said).not.toHaveBeenCalled();
  vi.restoreAllMocks();
});

test('what a server gives is checked within the limit by any schema', () => {
  const numbers = Array.from({ length: 15_000 }, (_, n) => n);
  const schema: JsonSchema = {
    type: 'object',
    properties: { ns: { type: 'array', items: { enum: numbers } } },
  };
  const ns = Array.from({ length: 1_000_000 }, () => 14_999);
  expect(() => checkJson(schema, { ns }, { limited: true })).toThrow(/longer than 5 s/u);
});

test.each<[string, JsonSchema, RegExp]>([
  ['too many characters', { type: 'object', description: 'x'.repeat(100_000) }, /100\d\d\d characters/u],
  ['too many levels', nested(100), /more than 64 levels/u],
  [
    'too many references',
    {
      type: 'object',
      allOf: Array.from({ length: 1001 }, () => ({ $ref: '#/$defs/x' })),
      $defs: { x: {} },
    },
    /1001 references/u,
  ],
])('a schema with %s is refused, and says so', (_, schema, message) => {
  expect(() => assertSchema(schema)).toThrow(message);
});
