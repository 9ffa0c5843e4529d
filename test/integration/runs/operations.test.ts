import { mkdtempSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createApp } from '../../../dashboard/app.tsx';
import type { App } from '../../../dashboard/context.ts';
import { exportByOtlp } from '../../../runs/metrics/otlp.ts';
import { runMetrics } from '../../../runs/metrics/run-metrics.ts';
import { readOperations } from '../../../runs/operations/operations.ts';
import type { Sources } from '../../../runs/sources.ts';
import { readTimeline } from '../../../runs/timeline/timeline.ts';
import { lossInWords } from '../../../runs/timeline/timeline-lanes.ts';
import { usageBelow } from '../../../runs/operations/usage.ts';
import { Presenter } from '../../../runs/ladder/presenter.ts';
import { ReplayJobs } from '../../../runs/replay/jobs.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { readPrometheusText } from '../../support/prometheus-text.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// A run whose long calls hang until they are let go, and whose rollout worker is killed in that moment.

const RUN = 'held-watched';
const folder = mkdtempSync(path.join(tmpdir(), 'gradus-operations-'));
const callsFile = path.join(folder, 'calls.jsonl');
let installation: TestInstallation;
let sources: Sources;
let app: App;

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier'], ['tool'], ['rollout'], ['learner']],
    dashboard: true,
    env: {
      GRADUS_ENVIRONMENTS: path.join(import.meta.dirname, '../../support/brief-calculator.ts'),
      GRADUS_TEST_CALLS: callsFile,
    },
  });
  const { settings, runs } = installation;
  sources = { store: ObjectStore.open(settings.store), temporal: runs.client };
  app = createApp(
    {
      sources,
      temporalUi: 'http://127.0.0.1:1/',
      namespace: settings.namespace,
      actions: false,
      formToken: 'none',
      presenter: new Presenter({ modules: [] }),
      replays: new ReplayJobs({ env: {} }),
      secrets: [],
    },
    { hosts: new Set(['here']), password: null },
  );
  await runs.start(RUN, briefSpec({ environment: 'calculator-brief' }));
});

afterAll(async () => {
  sources?.store.close();
  await installation?.remove();
  await rm(folder, { recursive: true, force: true });
});

async function page(at: string): Promise<string> {
  const response = await app.request(at, { headers: { host: 'here' } });
  expect(response.status).toBe(200);
  return response.text();
}

const secrets = (): string[] => {
  const { accessKey, secretKey } = installation.settings.store;
  return [accessKey, secretKey];
};

const identityOf = (role: 'tool' | 'rollout'): RegExp => new RegExp(`^${installation.workers.pid(role)}@`);

test('what hangs is seen with its age, its progress and its worker; so are those who serve each queue', async () => {
  const operations = await until(
    async () => {
      const read = await readOperations(sources.temporal);
      const calls = read.activities.filter(({ name, said }) => name === 'callTool' && said !== null);
      return calls.some(({ said }) => said?.kind === 'call' && Number(said.said) > 10) ? read : undefined;
    },
    300_000,
    () => 'no long call says how far it is',
  );
  const calls = operations.activities.filter(({ name }) => name === 'callTool');
  for (const call of calls) {
    expect(call).toMatchObject({
      run: RUN,
      state: 'running',
      attempt: 1,
      queue: 'gradus-tool',
      lastFailure: null,
    });
    expect(call.worker).toMatch(identityOf('tool'));
    expect(call.workflowId).toMatch(/^held-watched\/rl\/1\/\d\/0$/);
  }
  // The tool beats every 100 ms: its tenth beat is a second old call's.
  const oldest = Math.max(...calls.map(({ since }) => operations.asOf - since!));
  expect(oldest).toBeGreaterThan(1000);
  expect(oldest).toBeLessThan(600_000);

  const queue = (name: string, kind = 'activities') =>
    operations.queues.find((one) => one.name === name && one.kind === kind)!;
  expect(queue('gradus-rollout').pollers.map(({ identity }) => identity)).toEqual([
    expect.stringMatching(identityOf('rollout')) as string,
  ]);
  expect(queue('gradus', 'workflows').pollers).toHaveLength(1);
  expect(queue('gradus-verifier-simulation')).toMatchObject({ pollers: [], backlog: { tasks: 0 } });

  const html = await page('/operations');
  expect(html).toContain('callTool');
  expect(html).toMatch(/the tool says \d+/);
  expect(html).toContain(`http://127.0.0.1:1/namespaces/default/workflows/held-watched%2Frl%2F1%2F0%2F0/`);
  expect(await page('/operations?again=1')).not.toContain('callTool');
});

test('of more workflows than it asks it says how many it left out', async () => {
  const { workflows } = await readOperations(sources.temporal, 2);
  expect(workflows.asked).toBe(2);
  expect(workflows.open).toBeGreaterThan(4);
});

test('a killed rollout worker: which attempt was lost, what that cost, and what was not repeated', async () => {
  const { workers, runs } = installation;
  const killed = workers.pid('rollout')!;
  // Stopped it still has tasks handed to it; killed it has lost them.
  process.kill(killed, 'SIGSTOP');
  await writeFile(`${callsFile}.release`, '');
  const lost = await until(
    async () => (await runs.running(`${RUN}/rl/1/`, 'resume'))[0]?.workflowId,
    300_000,
    () => 'nothing was handed to the stopped worker',
  );
  process.kill(killed, 'SIGKILL');
  const group = Number(lost.split('/')[3]);
  const place = { run: RUN, stage: 'rl', step: 1, group };

  // The next worker stands still before it takes anything, until it was seen that another attempt is waited for.
  const next = await until(
    () =>
      Promise.resolve(
        [undefined, killed].includes(workers.pid('rollout')) ? undefined : workers.pid('rollout'),
      ),
    300_000,
    () => 'no other worker is started',
  );
  process.kill(next, 'SIGSTOP');
  const open = await until(
    async () => {
      const timeline = await readTimeline(sources, place);
      return timeline.activities.some((one) => one.lost?.open) ? timeline : undefined;
    },
    300_000,
    () => 'no other attempt is waited for',
  ).finally(() => process.kill(next, 'SIGCONT'));
  const whole = await until(
    async () => {
      const timeline = await readTimeline(sources, place);
      return timeline.to === null ? undefined : timeline;
    },
    300_000,
    () => `${lost} does not end`,
  );
  // While it is waited for the worker that had it is known.
  const awaited = open.activities.find((one) => one.lost?.open)!;
  expect(awaited).toMatchObject({ name: 'resume', state: 'waiting' });
  expect(awaited.lost!.worker).toMatch(new RegExp(`^${killed}@`));

  const resume = whole.activities.find((one) => one.name === 'resume' && one.lost !== null)!;
  expect(resume).toMatchObject({
    attempts: 2,
    state: 'done',
    lost: { attempts: 1, fault: { kind: 'silent' } },
  });
  expect(resume.worker).toMatch(identityOf('rollout'));
  const { atLeast, atMost } = resume.lost!.seconds;
  expect(atLeast).toBeCloseTo(20.2, 3);
  expect(atMost).toBeGreaterThanOrEqual(atLeast);
  // Besides that no more than what is waited for here.
  expect(atMost).toBeLessThan(atLeast + 600);
  expect(resume.kept).toMatchObject({ calls: resume.episodes!.length });
  expect(resume.kept!.tokens).toBeGreaterThan(0);
  expect(whole.lost.attempts).toBeGreaterThan(0);

  const { task, sample } = resume.episodes![0]!;
  const episode = await readTimeline(sources, place, task * 4 + sample);
  expect(episode.activities.map(({ name }) => name)).toEqual([
    'advance',
    'dueCalls',
    'callTool',
    'resume',
    ...episode.activities.slice(4).map(({ name }) => name),
  ]);
  const html = await page(`/runs/${RUN}/episodes/rl/1/${group}/${task * 4 + sample}/timeline`);
  expect(html).toContain(lossInWords(episode.activities[3]!)!);
  expect(html).toContain('fill="url(#lanes-lost)"');
});

test('Prometheus scrapes runs, queues and what Temporal’s SDK measures in each worker from the pages’ own address', async () => {
  const scrape = async () => {
    const response = await fetch(new URL('/metrics', installation.dashboard!));
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await response.text();
    return { text, metrics: readPrometheusText(text) };
  };
  const { text, metrics } = await until(
    async () => {
      const scraped = await scrape();
      // The first step has left facts when the second has begun.
      return scraped.metrics.has('gradus_run_mean_reward') ? scraped : undefined;
    },
    300_000,
    () => 'no step left facts',
  );
  const of = (name: string, labels: Record<string, string>): number | undefined =>
    metrics
      .get(name)
      ?.samples.find((sample) =>
        Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
      )?.value;
  expect(of('gradus_run_step', { run: RUN })).toBeGreaterThanOrEqual(1);
  expect(of('gradus_run_waiting', { run: RUN })).toBe(0);
  expect(of('gradus_run_entropy_nats', { run: RUN })).toBeGreaterThan(0);
  expect(of('gradus_task_queue_pollers', { queue: 'gradus-tool' })).toBe(1);
  expect(of('gradus_task_queue_pollers', { queue: 'gradus-verifier-simulation' })).toBe(0);
  expect(of('gradus_source_up', { source: 'temporal' })).toBe(1);
  // Each process with its own: only the one that serves workflows polls for them.
  const slots = metrics.get('temporal_worker_task_slots_available')!.samples;
  expect(new Set(slots.map(({ labels }) => labels['worker']))).toEqual(
    new Set(['orchestrator', 'tool', 'rollout', 'learner']),
  );
  for (const secret of secrets()) expect(text).not.toContain(secret);
});

test('runs and workers export by OTLP where OpenTelemetry’s variables say so, with the headers that they say', async () => {
  const receiver = await startOtlpReceiver();
  const variables = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=of%20the%20collector',
    OTEL_METRIC_EXPORT_INTERVAL: '500',
    OTEL_SERVICE_NAME: 'our-runs',
  };
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const lines: string[] = [];
  const exported = exportByOtlp(runMetrics(sources), (text) => lines.push(text))!;
  // A worker of a queue that has one already: Temporal's SDK exports by itself.
  const worker = await startWorkers(installation.settings, { processes: [['tool']] });
  try {
    const [ofRuns, ofWorkers] = await until(
      async () => {
        const runs = receiver.received.find(({ metrics }) => metrics.has('gradus_run_step'));
        const workers = receiver.received.find(({ metrics }) =>
          metrics.has('temporal_worker_task_slots_available'),
        );
        return runs && workers ? [runs, workers] : undefined;
      },
      300_000,
      () => `received ${receiver.received.length} exports; said: ${lines.join('; ')}`,
    );
    expect(ofRuns).toMatchObject({ path: '/v1/metrics', contentType: 'application/json' });
    expect(ofRuns.resource['service.name']).toBe('our-runs');
    const steps = ofRuns.metrics.get('gradus_run_step')!;
    expect(steps).toEqual([{ attributes: { run: RUN }, value: expect.any(Number) as number }]);
    expect(ofWorkers).toMatchObject({ path: '/v1/metrics', contentType: 'application/x-protobuf' });
    for (const { headers } of [ofRuns, ofWorkers]) expect(headers['api-key']).toBe('of the collector');
    expect(exported.description).toBe(new URL(receiver.endpoint).host);
  } finally {
    vi.unstubAllEnvs();
    await Promise.all([exported.close(), worker.stop()]);
    await receiver.close();
  }
  expect(lines).toEqual([]);
});

test('what Temporal has no history of is said to be so, and who asks for an episode too many is told how many there are', async () => {
  const html = await page(`/runs/${RUN}/episodes/rl/77/0/0/timeline`);
  expect(html).toContain('Temporal has no history of held-watched/rl/77/0');
  const response = await app.request(`/runs/${RUN}/episodes/rl/1/0/4/timeline`, {
    headers: { host: 'here' },
  });
  expect(response.status).toBe(404);
  expect(await response.text()).toContain('has 4 episodes: give a number from 0 to 3');
});

test('what the store holds is counted by prefix', async () => {
  const { all, parts, left } = await usageBelow(sources.store, `runs/${RUN}/`);
  expect(left).toBe(0);
  expect(parts.map(({ prefix }) => prefix)).toContain(`runs/${RUN}/checkpoints/`);
  expect(parts.map(({ bytes }) => bytes)).toEqual(parts.map(({ bytes }) => bytes).toSorted((a, b) => b - a));
  const listed = await sources.store.list(`runs/${RUN}/parts/`);
  const counted = await usageBelow(sources.store, `runs/${RUN}/parts/`);
  expect(counted.all.objects).toBeGreaterThanOrEqual(listed.length);
  expect(all.bytes).toBeGreaterThan(counted.all.bytes);
  const bucket = await usageBelow(sources.store, '');
  expect(bucket.parts.map(({ prefix }) => prefix)).toContain(`runs/${RUN}/`);
  expect(await page(`/operations?bytes=1&run=${RUN}`)).toContain(`runs/${RUN}/checkpoints/`);
});
