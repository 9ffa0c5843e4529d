import type { Proportion } from '../statistics/intervals.ts';
import { passAtK } from '../statistics/pass-at-k.ts';
import { addHowSolved } from './how-solved.ts';
import type { EvaluationResult } from '../requests/evaluation.ts';
import type { HowSolved } from './how-solved.ts';

/**
 * The six capabilities that agentic RL is to improve (Xi et al. 2023, arXiv 2309.07864), each as one figure.
 * Parts are in [0, 1], more is better; null where no episode had the occasion. What is counted is in `Conduct`.
 */
export interface Dimensions {
  /** Format compliance: episodes that an answer or their environment ended, every turn of which was a call or an answer. */
  instruction: number | null;
  /** Calls that a tool answered without an error. */
  tools: number | null;
  /** Success among the episodes that made two different calls or more. */
  multiStep: number | null;
  /** Success among the episodes that were told of an error. */
  selfCorrection: number | null;
  /**
   * What other attempts are worth: the part of what one attempt fails that one of all samples of the task solves,
   * (pass@n − pass@1) / (1 − pass@1). null with one sample a task, and where nothing fails.
   */
  exploration: number | null;
  /** Sampled tokens for each solved task, what was spent in vain included: less is better. */
  efficiency: number | null;
}

const part = (some: number, all: number): number | null => (all === 0 ? null : some / all);

export function dimensionsOf(howSolved: HowSolved): Dimensions {
  return {
    instruction: part(howSolved.compliant, howSolved.episodes),
    tools: part(howSolved.goodCalls, howSolved.calls),
    multiStep: part(howSolved.multiStepSolved, howSolved.multiStep),
    selfCorrection: part(howSolved.recovered, howSolved.erred),
    exploration: exploration(howSolved),
    efficiency: part(howSolved.tokens, howSolved.solved),
  };
}

/** The most samples that a task has of which it can be said whether they solved it. */
export const samplesOf = ({ tries }: HowSolved): number =>
  Math.max(0, ...Object.keys(tries).map((tried) => Number(tried.split('/')[1])));

/** Samples of a task, at most, of which it can be said whether they solved it; 1 where nothing is told of them. */
export const samplesIn = ({ conduct: howSolved = [] }: Pick<EvaluationResult, 'arms' | 'conduct'>): number =>
  Math.max(1, samplesOf(addHowSolved(howSolved)));

function exploration(howSolved: HowSolved): number | null {
  const samples = samplesOf(howSolved);
  if (samples < 2) return null;
  // Of the same tasks: those that all samples were judged of.
  const whole = Object.fromEntries(
    Object.entries(howSolved.tries).filter(([tried]) => tried.endsWith(`/${samples}`)),
  );
  const one = passAtK(whole, 1, 0.95)!.mean;
  return one === 1 ? null : (passAtK(whole, samples, 0.95)!.mean - one) / (1 - one);
}

/** What a solved task took, each in the mean; null where none was solved. */
export function effortOf({ solved, solvedTurns, solvedCalls, solvedTokens }: HowSolved) {
  return {
    turns: part(solvedTurns, solved),
    calls: part(solvedCalls, solved),
    tokens: part(solvedTokens, solved),
  };
}

/** Solved tasks that the policy was told of an error in, out of all solved ones. */
export const selfCorrected = ({ recovered, solved }: HowSolved): Proportion => ({
  successes: recovered,
  trials: solved,
});
