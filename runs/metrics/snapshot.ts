import type { LedgerTotals } from '../../core/ladder/ledger.ts';
import { figuresOf } from '../../core/training/figures.ts';
import type { Figures } from '../../core/training/figures.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { lastStep } from '../overview/last-step.ts';
import { readQueues } from '../temporal/queues.ts';
import type { Queue } from '../temporal/queues.ts';
import { readRuns } from '../overview/runs.ts';
import type { RunRow } from '../overview/runs.ts';
import type { Sources } from '../sources.ts';
import { LedgerSums } from './ledger-sums.ts';

/** What is measured of a run; null is what is not known. */
export interface RunSample extends Pick<RunRow, 'status' | 'stage' | 'step' | 'stageStep' | 'retrying'> {
  run: string;
  /** Of the newest step that has left facts. */
  meanReward: number | null;
  entropy: number | null;
  alarms: number | null;
  /** Success at the newest measurement. */
  heldOut: number | null;
  /** A person is asked. */
  waiting: boolean;
  /** By verifier of the higher tiers. */
  spend: Record<string, Pick<LedgerTotals, 'computed' | 'seconds' | 'usd'>>;
}

export interface MetricsSnapshot {
  runs: RunSample[];
  /** Runs that are known and are not among `runs`. */
  left: number;
  queues: Queue[];
  /** Who answers. */
  up: { temporal: boolean; store: boolean };
}

/** Whoever collects samples keeps a time series for each: so many runs have some, those that go on first. */
const MOST_RUNS = 100;
const MOST_VERIFIERS = 32;
/** What is over has samples for so long, so that its last ones are seen. */
const AFTERWARDS_MS = 3_600_000;
const PATIENCE_MS = 5000;

/** Reads what is measured. Of a ledger each page is read once. */
export class MetricsReader {
  private readonly sources: Sources;
  private readonly ledgers: LedgerSums;

  constructor(sources: Sources) {
    this.sources = sources;
    this.ledgers = new LedgerSums(sources.store);
  }

  /** Throws nothing for a source that is away: that is measured, too. */
  async read(): Promise<MetricsSnapshot> {
    const { temporal } = this.sources;
    const [{ rows, total, away }, queues] = await Promise.all([
      readRuns(this.sources, { limit: MOST_RUNS, patienceMs: PATIENCE_MS }),
      // That Temporal is away is told by `away`.
      temporal.withDeadline(Date.now() + PATIENCE_MS, () => readQueues(temporal, [])).catch(() => []),
    ]);
    const shown = rows.filter(isSampled);
    const runs = await inParallel(shown, (row) => this.sampleOf(row), 8);
    this.ledgers.keepOnly(shown.map(({ run }) => run));
    return {
      runs,
      left: total - shown.length,
      queues,
      up: { temporal: !away.includes('temporal'), store: !away.includes('store') },
    };
  }

  private async sampleOf(row: RunRow & { run: string }): Promise<RunSample> {
    const { run, status, stage, step, stageStep, retrying, heldOut } = row;
    const [facts, spend] = await Promise.all([this.figuresOf(run), this.spendOf(run)]);
    return {
      run,
      status,
      stage,
      step,
      stageStep,
      retrying,
      spend,
      waiting: status === 'waiting',
      heldOut: heldOut?.success ?? null,
      meanReward: facts?.['reward/mean'] ?? null,
      entropy: facts?.['policy/entropy'] ?? null,
      alarms: facts?.['alarms/standing'] ?? null,
    };
  }

  private async figuresOf(run: string): Promise<Figures | null> {
    const { store } = this.sources;
    try {
      const last = await lastStep(store, run, await specOfRun(store, run, { damaged: [] }));
      return last && figuresOf(last.step);
    } catch {
      // Away, which is measured; or damaged, which the pages of the run say.
      return null;
    }
  }

  private async spendOf(run: string): Promise<RunSample['spend']> {
    try {
      return Object.fromEntries(Object.entries(await this.ledgers.of(run)).slice(0, MOST_VERIFIERS));
    } catch {
      return {};
    }
  }
}

function isSampled(row: RunRow): row is RunRow & { run: string } {
  if (row.run === null || ['imported', 'evaluation', 'forgotten', 'unknown'].includes(row.status))
    return false;
  return row.endedAt === null || Date.now() - row.endedAt < AFTERWARDS_MS;
}
