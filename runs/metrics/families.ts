import type { MetricsSnapshot, RunSample } from './snapshot.ts';

/** A metric with its samples: one for each set of labels. */
export interface Family {
  /** By Prometheus's conventions: base units, `_total` of what only grows. */
  name: string;
  help: string;
  /** By OpenTelemetry's, which are UCUM's. */
  unit: string;
  kind: 'gauge' | 'counter';
  samples: { labels: Record<string, string>; value: number }[];
}

/** Every metric, those without a sample, too. */
export function familiesOf({ runs, left, queues, up }: MetricsSnapshot): Family[] {
  const ofRuns = (
    name: string,
    help: string,
    unit: string,
    value: (run: RunSample) => number | null,
  ): Family => ({
    name,
    help,
    unit,
    kind: 'gauge',
    samples: runs.flatMap((sample) => {
      const number = value(sample);
      return number === null || !Number.isFinite(number)
        ? []
        : [{ labels: { run: sample.run }, value: number }];
    }),
  });
  const ofVerifiers = (
    name: string,
    help: string,
    unit: string,
    value: (totals: RunSample['spend'][string]) => number,
  ): Family => ({
    name,
    help,
    unit,
    kind: 'counter',
    samples: runs.flatMap(({ run, spend }) =>
      Object.entries(spend).map(([verifier, totals]) => ({
        labels: { run, verifier },
        value: value(totals),
      })),
    ),
  });
  return [
    {
      name: 'gradus_run_info',
      help: 'A run that goes on or has ended in the last hour, with its status and stage; always 1.',
      unit: '',
      kind: 'gauge',
      samples: runs.map(({ run, status, stage }) => ({
        labels: { run, status, stage: stage ?? '' },
        value: 1,
      })),
    },
    ofRuns('gradus_run_step', 'Step of the run, from 1.', '{step}', ({ step }) => step),
    ofRuns(
      'gradus_run_stage_step',
      'Step of the stage that the run is at.',
      '{step}',
      (run) => run.stageStep,
    ),
    ofRuns(
      'gradus_run_mean_reward',
      'Mean reward of the newest step that has left facts.',
      '1',
      (run) => run.meanReward,
    ),
    ofRuns(
      'gradus_run_held_out_success_ratio',
      'Success on tasks that are not trained on, at the newest measurement.',
      '1',
      (run) => run.heldOut,
    ),
    ofRuns(
      'gradus_run_entropy_nats',
      "Estimate of the policy's entropy per sampled token, of the newest step that has left facts.",
      'nat',
      (run) => run.entropy,
    ),
    ofRuns('gradus_run_waiting', 'Whether the run waits for a person (1) or not (0).', '1', (run) =>
      Number(run.waiting),
    ),
    ofRuns(
      'gradus_run_retrying_activities',
      'Kinds of activities of the run that are at their third attempt or a later one.',
      '{activity}',
      (run) => run.retrying,
    ),
    ofRuns(
      'gradus_run_alarms',
      'Alarms that stand after the newest step that has left facts.',
      '{alarm}',
      (run) => run.alarms,
    ),
    ofVerifiers(
      'gradus_verifier_compute_seconds_total',
      'What verdicts of a verifier took that were computed for the run, seconds.',
      's',
      ({ seconds }) => seconds,
    ),
    ofVerifiers(
      'gradus_verifier_cost_usd_total',
      'What verdicts of a verifier cost that were computed for the run, US dollars.',
      'USD',
      ({ usd }) => usd,
    ),
    ofVerifiers(
      'gradus_verifier_verdicts_total',
      'Verdicts of a verifier that were computed for the run.',
      '{verdict}',
      ({ computed }) => computed,
    ),
    {
      name: 'gradus_task_queue_pollers',
      help: 'Workers that have asked a task queue for work within the last five minutes.',
      unit: '{worker}',
      kind: 'gauge',
      samples: queues.map(({ name, kind, pollers }) => ({
        labels: { queue: name, kind },
        value: pollers.length,
      })),
    },
    {
      name: 'gradus_task_queue_backlog_tasks',
      help: 'Tasks of a queue that nobody has taken, about so many.',
      unit: '{task}',
      kind: 'gauge',
      samples: queues.flatMap(({ name, kind, backlog }) =>
        backlog === null ? [] : [{ labels: { queue: name, kind }, value: backlog.tasks }],
      ),
    },
    {
      name: 'gradus_runs_left_out',
      help: 'Runs that are known and have no samples: those that ended earlier, and what is beyond the first hundred.',
      unit: '{run}',
      kind: 'gauge',
      samples: [{ labels: {}, value: left }],
    },
    {
      name: 'gradus_source_up',
      help: 'Whether Temporal and the object store answered (1) or not (0).',
      unit: '1',
      kind: 'gauge',
      samples: Object.entries(up).map(([source, answers]) => ({
        labels: { source },
        value: Number(answers),
      })),
    },
  ];
}
