import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import { randomKey, uniform } from '../../../core/random.ts';
import { defineTool, ToolRefusal, type FunctionTool } from '../../contract/environment.ts';
import { applyOperator, parseExpression } from './expression.ts';

const argumentsSchema = z.strictObject({
  expression: z.string().describe('Two whole numbers and one of + - * / between them, like 12+7'),
});

const description = 'Does one exact operation on two whole numbers, like 12+7.';

/** One binary operation. Throws ToolRefusal for anything else. */
export function calculate(expression: string): string {
  const parsed = parseExpression(expression);
  if (typeof parsed === 'bigint') throw new ToolRefusal('no operation: write two numbers, like 12+7');
  const { operator, left, right } = parsed;
  if (typeof left !== 'bigint' || typeof right !== 'bigint') {
    throw new ToolRefusal('one operation at a time, like 12+7');
  }
  return String(applyOperator(operator, left, right));
}

export const calculatorTool = defineTool({
  name: 'calculator',
  description,
  arguments: argumentsSchema,
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0, usd: 0 },
  run: ({ expression }) => calculate(expression),
});

export interface SlowCalculatorOptions {
  name?: string;
  /** How long a call takes. */
  seconds?: number;
  /** Chance that an attempt fails half-way, in [0, 1]. */
  failureProbability?: number;
}

/** From this attempt on a slow call no longer fails: faults that are made up must not change a run's outcome. */
const SURE_ATTEMPT = 4;

/**
 * The same calculator behind a call that takes seconds, heartbeats, can be cancelled, and sometimes fails. Whether
 * an attempt fails depends on the idempotency key and the attempt alone, and the answer on neither.
 */
export function slowCalculatorTool(
  options: SlowCalculatorOptions = {},
): FunctionTool<typeof argumentsSchema> {
  const { name = 'calculator_slow', seconds = 2, failureProbability = 0.1 } = options;
  if (!(seconds >= 0) || !(failureProbability >= 0 && failureProbability <= 1)) {
    throw new GradusError(
      'environment',
      'tool',
      `The slow calculator takes seconds >= 0 and a failure probability in [0, 1], not ${seconds} and ${failureProbability}.`,
    );
  }
  const beats = Math.max(1, Math.ceil(seconds));
  return defineTool({
    name,
    description,
    arguments: argumentsSchema,
    placement: 'long',
    effect: 'idempotent',
    cost: { seconds, usd: 0 },
    limits: { timeoutSeconds: 30 + 2 * seconds, heartbeatSeconds: 10, maxAttempts: SURE_ATTEMPT + 1 },
    run: async ({ expression }, context) => {
      const { idempotencyKey, attempt, signal } = context;
      const draw = uniform(randomKey('calculator_slow', idempotencyKey), attempt);
      const failAt = attempt < SURE_ATTEMPT && draw < failureProbability ? Math.ceil(beats / 2) : undefined;
      for (let beat = 1; beat <= beats; beat++) {
        context.heartbeat({ beat, of: beats });
        await wait((seconds * 1000) / beats, undefined, { signal });
        if (beat === failAt) {
          throw new GradusError(
            'tool',
            'unavailable',
            'The slow calculator lost its connection; call it again.',
            {
              retryable: true,
            },
          );
        }
      }
      return calculate(expression);
    },
  });
}
