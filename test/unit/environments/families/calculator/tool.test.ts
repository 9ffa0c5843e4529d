import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { calculate, slowCalculatorTool } from '../../../../../environments/families/calculator/tool.ts';
import { ToolRefusal, type ToolContext } from '../../../../../environments/contract/environment.ts';
import { propertyRuns } from '../../../../support/property-runs.ts';

describe('the calculator', () => {
  test.each([
    ['12+7', '19'],
    [' 12 - 30 ', '-18'],
    ['12--5', '17'],
    ['-3*-4', '12'],
    ['(-3)*4', '-12'],
    ['84/7', '12'],
    ['-84/7', '-12'],
    ['007+1', '8'],
    ['999999999999999+1', '1000000000000000'],
  ])('%s is %s', (expression, result) => {
    expect(calculate(expression)).toBe(result);
  });

  test.each([
    ['1+2+3', 'one operation at a time'],
    ['(1+2)*3', 'one operation at a time'],
    ['7', 'no operation'],
    ['', 'only + - * /'],
    ['12+', 'cannot read it'],
    ['7/0', 'division by zero'],
    ['7/2', '7/2 is not a whole number'],
    ['1.5+2', 'whole numbers only'],
    ['1e3+2', 'whole numbers only'],
    ['"a"+2', 'whole numbers only'],
    ['x+2', 'only + - * /'],
    ['process.exit()', 'only + - * /'],
    ['this+1', 'only + - * /'],
    ['2**3', 'only + - * /'],
    ['7%2', 'only + - * /'],
    ['1,000+2', 'only + - * /'],
    ['1+2;3', 'only + - * /'],
    ['9999999999999999+1', 'number too large'],
    ['999999999999*999999999999', 'number too large'],
    ['1+'.repeat(60), 'too long'],
  ])('refuses %s: %s', (expression, reason) => {
    expect(() => calculate(expression)).toThrow(ToolRefusal);
    expect(() => calculate(expression)).toThrow(reason);
  });

  test('answers or refuses, and nothing else, whatever it is given', () => {
    const piece = fc.oneof(
      fc.constantFrom('1', '99', '+', '-', '*', '/', '(', ')', '.', ' ', '[', '?', ':', ',', '"', 'x'),
      fc.string({ unit: 'binary', maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 15 }), (pieces) => {
        try {
          expect(calculate(pieces.join(''))).toMatch(/^-?\d+$/);
        } catch (error) {
          expect(error).toBeInstanceOf(ToolRefusal);
        }
      }),
      { numRuns: propertyRuns(2000) },
    );
  });
});

describe('the slow calculator', () => {
  const contextOf = (idempotencyKey: string, attempt: number, signal = new AbortController().signal) => {
    const beats: unknown[] = [];
    const context: ToolContext = {
      idempotencyKey,
      attempt,
      signal,
      heartbeat: (details) => beats.push(details),
      task: () => Promise.reject(new Error('no task was made')),
    };
    return { context, beats };
  };

  test('gives the same answer after retries as without a fault', async () => {
    const tool = slowCalculatorTool({ seconds: 0, failureProbability: 0.5 });
    let failures = 0;
    for (let key = 0; key < 50; key++) {
      for (let attempt = 1; ; attempt++) {
        try {
          expect(await tool.run({ expression: '12+7' }, contextOf(`call-${key}`, attempt).context)).toBe(
            '19',
          );
          break;
        } catch (error) {
          expect(error).toMatchObject({ name: 'GradusError', boundary: 'tool', retryable: true });
          expect(attempt).toBeLessThan(tool.limits!.maxAttempts!);
          failures++;
        }
      }
    }
    expect(failures).toBeGreaterThan(20);
  });

  test('fails at the same attempts of the same call each time', async () => {
    const tool = slowCalculatorTool({ seconds: 0, failureProbability: 0.5 });
    const fates = () =>
      Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          Promise.resolve(tool.run({ expression: '1+1' }, contextOf(`call-${i}`, 1).context)).then(
            () => 'done',
            () => 'failed',
          ),
        ),
      );
    const first = await fates();
    expect(await fates()).toEqual(first);
    expect(new Set(first).size).toBe(2);
  });

  test('heartbeats while it works, and stops at once when it is cancelled', async () => {
    const controller = new AbortController();
    const { context, beats } = contextOf('call', 1, controller.signal);
    const tool = slowCalculatorTool({ seconds: 60, failureProbability: 0 });
    const running = tool.run({ expression: '1+1' }, context);
    expect(beats).toEqual([{ beat: 1, of: 60 }]);
    controller.abort();
    await expect(running).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('tells the policy about its own mistakes as the quick one does', async () => {
    const tool = slowCalculatorTool({ seconds: 0, failureProbability: 0 });
    await expect(tool.run({ expression: '1+2+3' }, contextOf('call', 1).context)).rejects.toThrow(
      ToolRefusal,
    );
  });

  test('refuses a duration or a probability that makes no sense', () => {
    expect(() => slowCalculatorTool({ seconds: -1 })).toThrow('seconds >= 0');
    expect(() => slowCalculatorTool({ failureProbability: 2 })).toThrow('probability in [0, 1]');
  });
});
