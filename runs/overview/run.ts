import type { Client } from '@temporalio/client';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { runKey } from '../../store/keys.ts';
import type { StoredStep } from '../../store/training/step-facts.ts';
import type { Progress } from '../../workflows/control/messages.ts';
import type { Execution } from '../temporal/executions.ts';
import { executionOfRun } from '../temporal/find-execution.ts';
import type { LastKnown } from '../remembered.ts';
import type { Sources } from '../sources.ts';
import { stepsOf } from './steps.ts';

/** A run, as far as it is known. */
export interface RunView {
  run: string;
  spec: CurriculumSpec | null;
  /** `value` is null where Temporal has forgotten the run, too. */
  execution: LastKnown<Execution>;
  /** What the run itself says; nothing while no worker is there to be asked. */
  progress: LastKnown<Progress>;
  steps: LastKnown<StoredStep[]>;
  /** Why its spec, or facts of steps, are not here though they are there: they are damaged. */
  unreadable: readonly string[];
}

/** How long a run is waited for: a page must not hang with its worker. */
const PATIENCE_MS = 2000;
/** Who looks again within this time sees the same. */
const FRESH_MS = 1000;
/** Runs whose last view is kept for when a source is away, and steps of all of them: a thousand take some four megabytes. */
const MOST_VIEWS = 64;
const MOST_STEPS = 10_000;

interface CachedView {
  at: number;
  view: Promise<RunView>;
  last: RunView | null;
}

/**
 * Looks at runs for many who look at the same: one question to each source a second and run, however many ask, and what
 * was seen last where a source is away.
 */
export class RunObserver {
  private readonly views = new Map<string, CachedView>();
  private readonly sources: Sources;
  private readonly mostSteps: number;

  constructor(sources: Sources, { mostSteps = MOST_STEPS } = {}) {
    this.sources = sources;
    this.mostSteps = mostSteps;
  }

  /**
   * Throws GradusError('store', 'no-run') where neither source knows the run, and GradusError('store', 'invalid-key') for
   * what can be the name of none.
   */
  async look(run: string): Promise<RunView> {
    runKey(run);
    const known = this.views.get(run);
    if (known && Date.now() - known.at < FRESH_MS) return known.view;
    const last = known?.last ?? null;
    const entry = { at: Date.now(), view: this.observe(run, last), last };
    this.views.delete(run);
    this.views.set(run, entry);
    void this.keep(run, entry);
    return entry.view;
  }

  /** As it is now, for whoever has just changed it. Throws as `look`. */
  async lookAnew(run: string): Promise<RunView> {
    const known = this.views.get(run);
    if (known) known.at = -Infinity;
    return this.look(run);
  }

  private async keep(run: string, entry: CachedView): Promise<void> {
    try {
      entry.last = await entry.view;
      entry.at = Date.now();
    } catch {
      // Who asked is told why. The next one asks anew.
      if (this.views.get(run) === entry) this.views.delete(run);
    }
    this.forget();
  }

  /** Those that were looked at longest ago, but never the one that was looked at last. */
  private forget(): void {
    const [newest, ...others] = [...this.views].toReversed();
    let steps = stepsIn(newest?.[1]);
    for (const [i, [run, entry]] of others.entries()) {
      steps += stepsIn(entry);
      if (steps > this.mostSteps || i + 1 >= MOST_VIEWS) this.views.delete(run);
    }
  }

  private async observe(run: string, last: RunView | null): Promise<RunView> {
    const { store, temporal } = this.sources;
    const damaged: string[] = [];
    const [{ execution, progress }, spec, steps] = await Promise.all([
      asked(temporal, run, last),
      // A spec never changes.
      seen(async () => last?.spec ?? specOfRun(store, run, { damaged })),
      seen(async () => {
        const { steps: read, unreadable } = await stepsOf(store, run);
        damaged.push(...unreadable.map(({ message }) => message));
        return read;
      }, last?.steps),
    ]);
    if (execution.value === null && spec.unknown === true && execution.problem === null) throw spec.error;
    // Of a store that is away it is not known what is damaged now.
    const unreadable = steps.problem === null ? damaged : (last?.unreadable ?? []);
    return { run, spec: spec.value, execution, progress, steps, unreadable };
  }
}

/** What Temporal knows of a run, and what the run itself says: one who does not answer is not asked again at once. */
async function asked(
  temporal: Client,
  run: string,
  last: RunView | null,
): Promise<Pick<RunView, 'execution' | 'progress'>> {
  const execution = await seen(() => executionOfRun(temporal, run), last?.execution);
  const { value: there, problem } = execution;
  if (problem !== null) {
    return { execution, progress: { ...(last?.progress ?? { value: null, asOf: null }), problem } };
  }
  const progress = await seen(async () => {
    if (there === null) return null;
    return temporal.withDeadline(Date.now() + PATIENCE_MS, () =>
      temporal.workflow.getHandle(there.workflowId, there.runId).query<Progress>('progress'),
    );
  }, last?.progress);
  return { execution, progress };
}

const stepsIn = (kept: CachedView | undefined): number => kept?.last?.steps.value?.length ?? 0;

type Looked<T> = LastKnown<T> & { unknown?: boolean; error?: unknown };

async function seen<T>(look: () => Promise<T | null>, last?: LastKnown<T>): Promise<Looked<T>> {
  try {
    return { value: await look(), asOf: Date.now(), problem: null };
  } catch (error) {
    const unknown = error instanceof GradusError && error.type === 'no-run';
    return {
      value: last?.value ?? null,
      asOf: last?.asOf ?? null,
      problem: unknown ? null : messageOf(error),
      ...(unknown && { unknown, error }),
    };
  }
}
