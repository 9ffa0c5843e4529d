import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test, vi } from 'vitest';
import { assertSchema, checkArguments } from '../../../../environments/host/arguments.ts';
import type { JsonSchema, Tool } from '../../../../environments/contract.ts';

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
