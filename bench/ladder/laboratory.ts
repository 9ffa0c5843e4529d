import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { rolloutsPrefix } from '../../store/keys.ts';
import { readLedger } from '../../store/ladder/ledger.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { addEntries } from '../../core/ladder/ledger.ts';
import { ids, QUEUES } from '../../core/names.ts';
import type { StepReport } from '../../core/ports.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { ArmTally, EvaluationRequest } from '../../core/requests.ts';
import type { WorkerSettings } from '../../workers/settings.ts';
import type { evaluation } from '../../workflows/training/evaluation.ts';
import type { BenchOptions } from '../bench.ts';
import { durableRun } from '../durable-run.ts';
import type { DurableRun } from '../durable-run.ts';
import { signalsOf } from '../histories.ts';
import { armSpec, judgedBy, warmSpec } from './arms.ts';
import type { ArmName } from './arms.ts';

/** How an arm's training went. */
export interface Training {
  arm: ArmName;
  /** The workflow's id. */
  run: string;
  /** Checkpoints that outlive the training: how many steps were made, and wall seconds since the run began. */
  kept: { checkpoint: CheckpointRef; steps: number; seconds: number }[];
  /** Verdicts computed, by verifier. */
  computed: Record<string, number>;
}

/** What DFT says of a checkpoint's answers; one that is no molecule within the limits scores 0. */
export interface Quality {
  score: number;
  /** Of the mean, one standard deviation. */
  deviation: number;
  arms: ArmTally[];
}

/** Trains arms in one installation, and judges what they have learnt. */
export class Laboratory {
  private readonly client: Client;
  private readonly store: ObjectStore;
  private readonly options: BenchOptions;

  private constructor(client: Client, store: ObjectStore, options: BenchOptions) {
    this.client = client;
    this.store = store;
    this.options = options;
  }

  static async open(client: Client, settings: WorkerSettings, options: BenchOptions): Promise<Laboratory> {
    return new Laboratory(client, await ObjectStore.connect(settings.store), options);
  }

  close(): void {
    this.store.close();
  }

  /** The checkpoint that all arms begin with. */
  async warmStart(): Promise<CheckpointRef> {
    this.options.say('— the warm start of all arms');
    const { reference } = (await this.run('warm', warmSpec(this.options))).result;
    return reference!;
  }

  /** Trains for the spec's steps, or for so many seconds. No verdict is known when it begins. */
  async train(arm: ArmName, from: CheckpointRef, seconds?: number): Promise<Training> {
    this.options.say(`— ${arm}${seconds === undefined ? '' : `, for ${seconds} s`}`);
    await this.forgetVerdicts();
    const spec = armSpec(arm, { ...this.options, from: `warm@${from.step}`, endless: seconds !== undefined });
    const ended = new AbortController();
    const stopping = seconds === undefined ? undefined : this.stopAfter(arm, seconds, ended.signal);
    const { handle } = await this.run(arm, spec).finally(() => ended.abort());
    await stopping;
    const history = await handle.fetchHistory();
    const start = Number(history.events![0]!.eventTime!.seconds);
    const kept = signalsOf(history, 'stepReported').flatMap(({ at, value }) => {
      const { step, checkpoint } = value as StepReport;
      if (step % spec.retention.keepEvery !== 0) return [];
      return [{ checkpoint, steps: step, seconds: at / 1000 - start }];
    });
    const computed = addEntries({}, await readLedger(this.store, arm));
    return {
      arm,
      run: arm,
      kept,
      computed: Object.fromEntries(Object.entries(computed).map(([name, totals]) => [name, totals.computed])),
    };
  }

  /** Judges one answer to each of the report's tasks by DFT. */
  async quality(name: string, checkpoint: CheckpointRef): Promise<Quality> {
    const request: EvaluationRequest = {
      ...judgedBy(this.options),
      run: 'quality',
      name,
      step: 0,
      checkpoint,
    };
    const { arms } = await this.client.workflow.execute<typeof evaluation>('evaluation', {
      args: [request],
      workflowId: ids.evaluation('quality', name),
      taskQueue: QUEUES.orchestrator,
    });
    const scores: number[] = [];
    for (const { key } of await this.store.list(rolloutsPrefix('quality', name))) {
      if (!key.includes('.judged')) continue;
      const { episodes } = await loadTrajectories(this.store, (await this.store.head(key))!);
      for (const { outcome } of episodes) {
        if (outcome && 'reward' in outcome) scores.push(outcome.reward);
      }
    }
    const mean = scores.reduce((sum, one) => sum + one, 0) / scores.length;
    const variance = scores.reduce((sum, one) => sum + (one - mean) ** 2, 0) / scores.length;
    return { score: mean, deviation: Math.sqrt(variance / scores.length), arms };
  }

  private run(workflowId: string, spec: object): Promise<DurableRun> {
    return durableRun(this.client, spec, { ...this.options, workflowId });
  }

  /** Asks the run to stop once so long has gone by; a run that has ended needs no stopping. */
  private async stopAfter(workflowId: string, seconds: number, ended: AbortSignal): Promise<void> {
    try {
      await delay(seconds * 1000, undefined, { signal: ended });
    } catch {
      return;
    }
    await this.client.workflow.getHandle(workflowId).signal('stop');
  }

  private async forgetVerdicts(): Promise<void> {
    const known = await this.store.list('verdicts/');
    if (known.length > 0) await this.store.remove(known.map(({ key }) => key));
  }
}
