import calculator from '../examples/calculator.json' with { type: 'json' };
import { PolicyPool } from '../activities/rollout/policy-pool.ts';
import { rate } from '../core/statistics/intervals.ts';
import { addTokens, trainedShare } from '../core/training/figures.ts';
import type { TrainedTokens } from '../core/training/figures.ts';
import { total } from '../core/training/stage-policy.ts';
import { percent } from '../core/percent.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { inThisProcess } from '../environments/host/hosted-environment.ts';
import { builtInEnvironments } from '../environments/families/index.ts';
import { ObjectStore } from '../store/objects/object-store.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';
import { oneThreadedLearner } from './one-threaded.ts';
import { plainRun } from './plain-run.ts';
import { withPlainStore } from './plain-store.ts';

/** Held-out success that is looked for. */
const GOAL = 0.95;

/** What a run samples until it has come so far. */
interface Sampled {
  /** Until a held-out measurement said so for the first time; null where none did. */
  untilGoal: number | null;
  tokens: TrainedTokens;
}

/**
 * How many tokens the demo's spec samples to learn from, and what part of them teaches; run by run with another seed, in a
 * plain process with a decoder and a learner of one thread.
 */
export async function* tokensBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say } = options;
  const spec = quick ? tinySpec() : calculator;
  const runs: Sampled[] = [];
  for (let seed = 1; seed <= (options.runs ?? 1); seed++) {
    say(`seed ${seed}`);
    runs.push(await sampled({ ...spec, seed }, options));
  }
  const row = (what: string, unit: string, better: 'more' | 'less', ours: number[]): BenchRow =>
    benchRow({ bench: 'tokens', case: what, unit, better, ours, anchor: null });
  const reached = runs.flatMap(({ untilGoal }) => untilGoal ?? []);
  const goal = `until held-out success is ${percent(GOAL)}, in ${reached.length} of ${runs.length} runs`;
  if (reached.length > 0) yield row(goal, 'tokens', 'less', reached);
  yield row(
    'of the whole run',
    'tokens',
    'less',
    runs.map(({ tokens }) => tokens.sampled),
  );
  yield row(
    'of which something was learnt from',
    'share',
    'more',
    runs.map(({ tokens }) => trainedShare(tokens) ?? 0),
  );
}

function sampled(spec: object, options: BenchOptions): Promise<Sampled> {
  const { say, signal } = options;
  return withPlainStore(options, async (settings) => {
    const store = await ObjectStore.connect(settings.store);
    const policies = new PolicyPool(store, () => createDecoder({ threads: 1 }));
    const learner = await oneThreadedLearner();
    const sums: Sampled = { untilGoal: null, tokens: { sampled: 0, taught: 0 } };
    try {
      const environments = inThisProcess(builtInEnvironments);
      const run = 'tokens';
      await plainRun(spec, {
        store,
        environments,
        policies,
        learner,
        run,
        onStep: ({ stage, stageStep, sampledTokens, taughtTokens, heldOut }) => {
          signal.throwIfAborted();
          // A warm start samples nothing to learn from.
          if (taughtTokens === undefined) return;
          sums.tokens = addTokens(sums.tokens, { sampled: sampledTokens, taught: taughtTokens })!;
          if (heldOut === null) return;
          const success = rate(total(heldOut.arms));
          if (success >= GOAL) sums.untilGoal ??= sums.tokens.sampled;
          say(
            `${stage} ${stageStep}: ${percent(success)} held-out after ${sums.tokens.sampled} tokens, ${percent(trainedShare(sums.tokens) ?? 0)} of them taught`,
          );
        },
      });
      return sums;
    } finally {
      await learner.close();
      await policies.close();
      store.close();
    }
  });
}
