import { expect, test } from 'vitest';
import { mergeExpositions } from '../../../../runs/metrics/exposition.ts';
import { familiesOf } from '../../../../runs/metrics/families.ts';
import { otlpOf } from '../../../../runs/metrics/otlp-settings.ts';
import type { MetricsSnapshot, RunSample } from '../../../../runs/metrics/snapshot.ts';
import { prometheusText } from '../../../../runs/metrics/telemetry.ts';
import { readPrometheusText } from '../../../support/prometheus-text.ts';

const sample = (run: string, more: Partial<RunSample> = {}): RunSample => ({
  run,
  status: 'running',
  stage: 'rl',
  step: 12,
  stageStep: 10,
  retrying: 0,
  meanReward: 0.25,
  entropy: 1.5,
  alarms: 0,
  heldOut: 0.75,
  waiting: false,
  spend: {},
  ...more,
});
const snapshot = (runs: RunSample[]): MetricsSnapshot => ({
  runs,
  left: 3,
  queues: [
    { name: 'gradus', kind: 'workflows', pollers: [{ identity: '1@a', lastSeen: 0 }], backlog: null },
    { name: 'gradus', kind: 'activities', pollers: [], backlog: { tasks: 7, seconds: 2 } },
  ],
  up: { temporal: true, store: false },
});
const scraped = (runs: RunSample[]) => readPrometheusText(prometheusText(familiesOf(snapshot(runs))));

test('every number of a run is a metric with its unit in its name, and what is not known has no sample', () => {
  const spend = { expert: { computed: 4, seconds: 90, usd: 1.25 } };
  const metrics = scraped([
    sample('a', { waiting: true, spend }),
    sample('b', { heldOut: null, retrying: null }),
  ]);
  const values = (name: string) =>
    metrics.get(name)!.samples.map(({ labels, value }) => [...Object.values(labels), value]);
  expect(values('gradus_run_step')).toEqual([
    ['a', 12],
    ['b', 12],
  ]);
  expect(values('gradus_run_waiting')).toEqual([
    ['a', 1],
    ['b', 0],
  ]);
  expect(values('gradus_run_held_out_success_ratio')).toEqual([['a', 0.75]]);
  expect(values('gradus_run_retrying_activities')).toEqual([['a', 0]]);
  expect(values('gradus_run_info')).toEqual([
    ['a', 'running', 'rl', 1],
    ['b', 'running', 'rl', 1],
  ]);
  expect(values('gradus_verifier_cost_usd_total')).toEqual([['a', 'expert', 1.25]]);
  expect(metrics.get('gradus_verifier_cost_usd_total')!.type).toBe('counter');
  expect(values('gradus_task_queue_pollers')).toEqual([
    ['gradus', 'workflows', 1],
    ['gradus', 'activities', 0],
  ]);
  expect(values('gradus_task_queue_backlog_tasks')).toEqual([['gradus', 'activities', 7]]);
  expect(values('gradus_source_up')).toEqual([
    ['temporal', 1],
    ['store', 0],
  ]);
});

test('a name with quotes, line feeds and backslashes is one label', () => {
  const stage = 'a "b"\n# TYPE x counter\\';
  const [info] = scraped([sample('a', { stage })]).get('gradus_run_info')!.samples;
  expect(info!.labels['stage']).toBe(stage);
});

test('what several workers say stands together by metric, told apart by the worker', () => {
  const of = (count: number): string =>
    [
      '# HELP temporal_requests_total Requests',
      '# TYPE temporal_requests_total counter',
      `temporal_requests_total{operation="a}b\\"c"} ${count}`,
      'temporal_requests_total 1',
      '# HELP temporal_latency_seconds Latency',
      '# TYPE temporal_latency_seconds histogram',
      `temporal_latency_seconds_bucket{le="+Inf"} ${count}`,
      `temporal_latency_seconds_sum 0.5`,
      `temporal_latency_seconds_count ${count}`,
      '',
    ].join('\n');
  const merged = readPrometheusText(
    mergeExpositions([
      { text: of(3), labels: { worker: 'rollout' } },
      { text: of(4), labels: { worker: 'learner' } },
    ]),
  );
  expect(merged.get('temporal_requests_total')!.samples).toEqual([
    { name: 'temporal_requests_total', labels: { worker: 'rollout', operation: 'a}b"c' }, value: 3 },
    { name: 'temporal_requests_total', labels: { worker: 'rollout' }, value: 1 },
    { name: 'temporal_requests_total', labels: { worker: 'learner', operation: 'a}b"c' }, value: 4 },
    { name: 'temporal_requests_total', labels: { worker: 'learner' }, value: 1 },
  ]);
  expect(merged.get('temporal_latency_seconds')!.samples).toHaveLength(6);
});

test('what is no sample is left out: a page of another server breaks nothing', () => {
  expect(mergeExpositions([{ text: '<html>\nx{a="b" 1\nx{} y\n{} 1\nx 1\n', labels: {} }])).toBe('x 1\n');
});

test('OpenTelemetry’s variables say whether, where and how often metrics are exported', () => {
  expect(otlpOf({})).toBeNull();
  expect(otlpOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/', OTEL_METRICS_EXPORTER: 'none' })).toBeNull();
  expect(otlpOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/', OTEL_SDK_DISABLED: 'true' })).toBeNull();
  expect(
    otlpOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:secret@c:4318/',
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20b,other=c=d',
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'other=e',
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
    }),
  ).toEqual({
    url: 'http://user:secret@c:4318/v1/metrics',
    host: 'c:4318',
    protocol: 'http/protobuf',
    headers: { 'api-key': 'a b', other: 'e' },
    intervalMs: 1000,
    timeoutMs: 1000,
  });
  // The endpoint of metrics alone is taken as it is.
  const own = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://m/x', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c' };
  expect(otlpOf(own)!.url).toBe('https://m/x');
});
