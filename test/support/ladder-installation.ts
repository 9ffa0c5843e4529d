import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { readLedger } from '../../store/ladder/ledger.ts';
import type { InstallationOptions } from '../../cli/stack-with-workers.ts';
import type { AbstentionRule } from '../../core/ladder/policy.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { ids } from '../../core/names.ts';
import type { Role } from '../../core/names.ts';
import { pause } from '../../workflows/control/messages.ts';
import type { Progress } from '../../workflows/control/messages.ts';
import type { LadderStatus } from '../../workflows/ladder/ladder-state.ts';
import { briefSpec } from './brief-spec.ts';
import { inOrder } from './tiny-spec.ts';
import type { Computation } from './ladder-calculator.ts';
import { untilBegun, untilSignalled } from './run-client.ts';
import type { RunClient } from './run-client.ts';
import { startTestInstallation } from './test-installation.ts';
import type { TestInstallation } from './test-installation.ts';

type RunHandle = Awaited<ReturnType<RunClient['start']>>;

/** What the tests of the ladder have in common: an installation that serves ladder-calculator.ts. */
export interface LadderInstallation extends TestInstallation {
  store: ObjectStore;
  roles: Role[];
  /** Holds up the computations of a verifier; the function that it gives lets them go. */
  hold: (verifier: string) => Promise<() => Promise<void>>;
  /**
   * Starts a run, and pauses it in the first step of its stage `rl`, which does not come to its end before the stage knows:
   * so it stands still behind that step. Gives what it shows then.
   */
  startPaused: (run: string, spec: unknown) => Promise<{ handle: RunHandle; shown: Progress }>;
  /** Lets everything go, for a test that failed while it held something up: what is held takes the tier's slots. */
  releaseAll: () => Promise<void>;
  /** What a verifier computed, as it counted itself. */
  computed: (verifier: string) => Promise<Computation[]>;
  ledger: (run: string) => Promise<LedgerEntry[]>;
  /** The query `ladder`; null while nobody can answer it. */
  status: (run: string) => Promise<LadderStatus | null>;
  /** What the ladder ends with, when nothing is waited for any more. */
  ladderEnd: (run: string) => Promise<LadderStatus>;
}

const PROCESSES: Role[][] = [
  ['orchestrator', 'verifier', 'tool'],
  ['simulation'],
  ['high-fidelity'],
  ['rollout'],
  ['learner'],
];

export async function startLadderInstallation(
  options: InstallationOptions = {},
): Promise<LadderInstallation> {
  const file = path.join(process.env['TMPDIR'] ?? '/tmp', `gradus-verdicts-${process.pid}`);
  const processes = options.processes ?? PROCESSES;
  const installation = await startTestInstallation({
    ...options,
    processes,
    env: {
      GRADUS_ENVIRONMENTS: path.resolve('test/support/ladder-calculator.ts'),
      GRADUS_TEST_VERDICTS: file,
      ...options.env,
    },
  });
  const store = await ObjectStore.connect(installation.settings.store);
  const held = new Set<string>();
  const releaseAll = async (): Promise<void> => {
    for (const name of held) await rm(name, { force: true });
  };
  const hold = async (verifier: string): Promise<() => Promise<void>> => {
    const name = `${file}.hold-${verifier}`;
    held.add(name);
    await writeFile(name, '');
    return () => rm(name);
  };
  const ladder = (run: string) => installation.runs.client.workflow.getHandle(ids.ladder(run));
  return {
    ...installation,
    store,
    roles: processes.flat(),
    hold,
    startPaused: async (run, spec) => {
      const { runs } = installation;
      const letGo = await hold('is-number');
      const handle = await runs.start(run, spec);
      await untilBegun(runs, ids.group(run, 'rl', 1, 0));
      await handle.signal(pause);
      await untilSignalled(runs, `${run}/rl`, pause.name);
      await letGo();
      const shown = await runs.progress(
        handle,
        ({ status, step }) => status === 'paused' && step?.stage === 'rl' && step.stageStep === 1,
      );
      return { handle, shown };
    },
    releaseAll,
    computed: async (verifier) => {
      const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return '';
        throw error;
      });
      const lines = text.split('\n').filter((line) => line !== '');
      return lines.map((line) => JSON.parse(line) as Computation).filter(({ name }) => name === verifier);
    },
    ledger: (run) => readLedger(store, run),
    status: (run) =>
      ladder(run)
        .query<LadderStatus>('ladder')
        .catch(() => null),
    ladderEnd: (run) => ladder(run).result() as Promise<LadderStatus>,
    remove: async () => {
      store.close();
      await installation.remove();
      await releaseAll();
      await rm(file, { force: true });
    },
  };
}

/** A tier of a spec. */
export interface TierOptions {
  verifier: string;
  passAtLeast: number;
  wait?: boolean;
  deadlineSeconds?: number;
  missing?: 'cheaper' | 'pending';
  abstains?: AbstentionRule;
  budget?: object;
  concurrency?: number;
  reviewers?: number;
}

/** The brief spec with these tiers above the fast one, which all candidates pass where `passAtLeast` is 0. */
export function ladderSpec(
  tiers: TierOptions[],
  options: {
    seed?: number;
    maxSteps?: number;
    groupsPerStep?: number;
    offer?: number;
    passAtLeast?: number;
  } = {},
) {
  const { seed = 5, maxSteps = 2, groupsPerStep = 4, offer = 0, passAtLeast = 0 } = options;
  const brief = briefSpec({ environment: 'calculator-ladder', maxSteps });
  const [warmStart, stage] = brief.stages;
  return {
    ...brief,
    seed,
    reward: { components: [{ verifier: 'ladder', role: 'outcome' }] },
    verification: {
      rungs: [{ verifier: 'is-number', passAtLeast }, ...tiers],
      offerLateFor: offer,
      // What a test counts is what the ladder asked for.
      evaluateBy: 'is-number',
    },
    stages: inOrder(
      { ...warmStart, tasks: [{ environment: 'calculator-ladder', levels: [1] }] },
      { ...stage, groupsPerStep, algorithm: { ...stage.algorithm, importanceCap: 2 } },
    ),
  };
}
