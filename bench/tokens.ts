import { percent } from '../core/percent.ts';
import { rate } from '../core/statistics/intervals.ts';
import { addTokens, trainedShare } from '../core/training/figures.ts';
import type { TrainedTokens } from '../core/training/figures.ts';
import { total } from '../core/training/stage-policy.ts';
import { builtInEnvironments } from '../environments/families/index.ts';
import { inThisProcess } from '../environments/host/hosted-environment.ts';
import calculator from '../examples/calculator.json' with { type: 'json' };
import { tinySpec } from '../test/support/tiny-spec.ts';
import { benchRowsOf } from './bench.ts';
import type { Bench } from './bench.ts';
import { withEngine } from './installations.ts';
import { plainRun } from '../test/support/plain-run.ts';

/** Held-out success that is looked for. */
const GOAL = 0.95;

/**
 * How many tokens the demo's spec samples to learn from, and what part of them teaches; run by run with another seed, in a
 * plain process with a decoder and a learner of one thread.
 */
export const tokensBench: Bench = async function* (options) {
  const { quick, say, signal } = options;
  const environments = inThisProcess(builtInEnvironments);
  const reached: number[] = [];
  const runs: TrainedTokens[] = [];
  for (let seed = 1; seed <= (options.runs ?? 1); seed++) {
    say(`seed ${seed}`);
    let tokens: TrainedTokens = { sampled: 0, taught: 0 };
    let untilGoal: number | undefined;
    await withEngine(options, (engine) =>
      plainRun(quick ? { ...tinySpec(), seed } : { ...calculator, seed }, {
        ...engine,
        environments,
        run: 'tokens',
        onStep: ({ stage, stageStep, sampledTokens, taughtTokens, heldOut }) => {
          signal.throwIfAborted();
          // A warm start samples nothing to learn from.
          if (taughtTokens === undefined) return;
          tokens = addTokens(tokens, { sampled: sampledTokens, taught: taughtTokens })!;
          if (heldOut === null) return;
          const success = rate(total(heldOut.arms));
          if (success >= GOAL) untilGoal ??= tokens.sampled;
          const trained = percent(trainedShare(tokens) ?? 0);
          say(
            `${stage} ${stageStep}: ${percent(success)} held-out after ${tokens.sampled} tokens, ${trained} of them trained`,
          );
        },
      }),
    );
    runs.push(tokens);
    if (untilGoal !== undefined) reached.push(untilGoal);
  }
  const row = benchRowsOf('tokens');
  const goal = `until held-out success is ${percent(GOAL)}, in ${reached.length} of ${runs.length} runs`;
  if (reached.length > 0) yield row(goal, 'tokens', 'less', reached);
  const sampled = runs.map((tokens) => tokens.sampled);
  yield row('of the whole run', 'tokens', 'less', sampled);
  const shares = runs.map((tokens) => trainedShare(tokens) ?? 0);
  yield row('of which something was learnt from', 'share', 'more', shares);
};
