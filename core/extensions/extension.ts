import type { z } from 'zod';
import type { Method } from '../algorithms/method.ts';
import type { OwnAgentLoop } from './agent-loop.ts';
import type { JudgedSample, RuleVerdict } from '../reward/rule.ts';

/**
 * A training method that a project brings. A spec names it: `{"kind": "own", "name": …, "options": {…}}`. It is pure, as
 * the methods in `core/algorithms/` are: numbers in, numbers out, the same ones for the same ones.
 */
export interface OwnMethod<Options extends z.ZodObject = z.ZodObject> extends Omit<
  Method<Options>,
  'schema'
> {
  readonly extends: 'method';
  /** As a spec calls it. */
  readonly name: string;
  /** What a spec may say of it in `options`, strict. */
  readonly options: Options;
}

/**
 * A rule of the reward that a project brings: `{"kind": "own", "name": …, "weight": …, "options": {…}}`. Pure, too. It is
 * given all samples of a task that verifiers could be asked about, in no particular order.
 */
export interface OwnRewardRule<Options extends z.ZodObject = z.ZodObject> {
  readonly extends: 'reward-rule';
  readonly name: string;
  readonly options: Options;
  /** For each sample a score in [0, 1] or null where there is nothing to say, in the order of the samples. */
  scores(samples: readonly JudgedSample[], options: z.output<Options>): readonly RuleVerdict[];
}

/** A dialect that a project brings; what it does is in `engine/dialect/own-dialect.ts`. */
export interface DialectExtension<Options extends z.ZodObject = z.ZodObject> {
  readonly extends: 'dialect';
  readonly name: string;
  readonly options: Options;
}

export type Extension = OwnMethod | OwnRewardRule | DialectExtension | OwnAgentLoop;

/** The default export of a module that brings a method. */
export const defineMethod = <Options extends z.ZodObject>(
  method: Omit<OwnMethod<Options>, 'extends'>,
): OwnMethod<Options> => ({ ...method, extends: 'method' });

/** The default export of a module that brings a rule of the reward. */
export const defineRewardRule = <Options extends z.ZodObject>(
  rule: Omit<OwnRewardRule<Options>, 'extends'>,
): OwnRewardRule<Options> => ({ ...rule, extends: 'reward-rule' });
