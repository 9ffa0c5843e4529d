import { setTimeout as delay } from 'node:timers/promises';
import type { Role } from '../core/names.ts';
import { RandomStream } from '../core/random.ts';
import { ObjectStore } from '../store/objects/object-store.ts';
import { killAndReplace } from '../test/support/kill-workers.ts';
import { recompute } from '../test/support/recompute.ts';
import { storedFacts } from '../test/support/stored-facts.ts';
import { startTestInstallation } from '../test/support/test-installation.ts';
import type { TestInstallation } from '../test/support/test-installation.ts';
import { tinySpecCollecting } from '../test/support/tiny-spec.ts';
import { benchRowsOf, chosenNames } from './bench.ts';
import type { Bench } from './bench.ts';

const PROCESSES: Role[][] = [['orchestrator'], ['verifier'], ['tool'], ['rollout'], ['learner']];
const KINDS: Record<string, object> = {
  'on-policy': { kind: 'on-policy' },
  pipelined: { kind: 'pipelined', lag: 2 },
  asynchronous: { kind: 'asynchronous', maxStaleness: 2 },
  replay: { kind: 'replay', part: 0.25, maxStaleness: 2, priority: 'advantage' },
};
/** Kills of a plan, each of them of one to three processes. */
const KILLS = 3;
/** Some time after a step has begun, at most; a step takes a second or two. */
const MOST_DELAY_MS = 1500;

interface Kill {
  /** After so many steps of RL, and so many milliseconds. */
  step: number;
  delayMs: number;
  roles: Role[];
}

/** A function of its number. */
function killPlan(seed: number): Kill[] {
  const draw = new RandomStream('kill-plan', seed);
  return Array.from({ length: KILLS }, (_, i) => {
    const order = PROCESSES.flat().map((role) => ({ role, place: draw.uniform() }));
    const count = draw.int(1, 3);
    return {
      step: i + draw.int(0, 1),
      delayMs: draw.int(0, MOST_DELAY_MS),
      roles: order
        .toSorted((one, other) => one.place - other.place)
        .slice(0, count)
        .map(({ role }) => role),
    };
  }).toSorted((one, other) => one.step - other.step);
}

/**
 * Runs of each kind of `collect` whose workers are killed by plans that are drawn, `--runs` of them or those of `--seed`. A row
 * is the part that ended as it should: with the weights and facts of the run that was left alone; where what a step takes depends on time,
 * with those of its own recomputation.
 */
export const killPlansBench: Bench = async function* (options) {
  const count = options.runs ?? (options.quick ? 1 : 20);
  const plans = options.seeds ?? Array.from({ length: count }, (_, plan) => plan + 1);
  for (const kind of chosenNames(Object.keys(KINDS), options)) {
    const installation = await startTestInstallation({
      processes: PROCESSES,
      dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 },
    });
    const store = await ObjectStore.connect(installation.settings.store);
    try {
      const spec = tinySpecCollecting(KINDS[kind]!);
      const alone = kind === 'asynchronous' ? null : await ended(installation, store, 'alone', spec);
      let alike = 0;
      for (const seed of plans) {
        options.signal.throwIfAborted();
        const run = `killed-${seed}`;
        const plan = killPlan(seed);
        const killed = await ended(installation, store, run, spec, plan);
        const same = alone === null ? await isRecomputed(installation, run) : killed === alone;
        alike += same ? 1 : 0;
        const words = plan.map(({ step, delayMs, roles }) => `${roles.join('+')} at ${step} + ${delayMs} ms`);
        options.say(`  ${kind}, plan ${seed} (${words.join('; ')}): ${same ? 'the same' : 'ANOTHER RESULT'}`);
      }
      yield benchRowsOf('faults:kills')(
        `${kind}: plans that change nothing`,
        `of ${plans.length}`,
        'more',
        [alike],
        plans.length,
      );
    } finally {
      store.close();
      await installation.remove();
    }
  }
};

/** Weights and facts of a run, as text, whose workers are killed meanwhile. */
async function ended(
  { runs, workers }: TestInstallation,
  store: ObjectStore,
  run: string,
  spec: object,
  plan: readonly Kill[] = [],
): Promise<string> {
  const handle = await runs.start(run, spec);
  for (const { step: at, delayMs, roles } of plan) {
    const { status } = await runs.progress(
      handle,
      ({ phase, step, status: now }) =>
        now === 'completed' || (phase === 'rl' && (at === 0 || (step?.stageStep ?? 0) >= at)),
      600_000,
    );
    if (status === 'completed') break;
    await delay(delayMs);
    await killAndReplace(workers, ...roles);
  }
  const { end, checkpoint } = await handle.result();
  return JSON.stringify([end, checkpoint.weights, await storedFacts(store, run)]);
}

/** Whether a run that is made again from what the first has kept ends with the same facts and weights. */
async function isRecomputed({ stateDir }: TestInstallation, run: string): Promise<boolean> {
  return (await recompute(stateDir, run)).includes('all facts and the weights are the same');
}
