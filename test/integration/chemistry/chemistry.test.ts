import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { ActivityFailure, ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Json } from '../../../core/json/json.ts';
import { tierQueue } from '../../../core/names.ts';
import type { TierAnswer, TierRequest } from '../../../core/tier-contract.ts';
import { attemptCall } from '../../../environments/host/tool-call.ts';
import { moleculesEnvironment } from '../../../environments/families/molecules/environment.ts';
import { loadRdkit } from '../../../environments/families/molecules/rdkit.ts';
import { chemistry as chemistryPlugin } from '../../../plugins/molecules/plugin.ts';
import { ensureChemistry } from '../../../plugins/molecules/chemistry/python.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { isAlive } from '../../../infra/setup/file-lock.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import { CHEMISTRY_PYTHON, chemistryProcess } from '../../../plugins/molecules/chemistry/process.ts';
import { SupervisedProcess } from '../../../workers/supervised-process.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import type { askTier } from './client-workflows.ts';

// The chemistry worker as it is: Python, a real Temporal server, real calculations. No other workers are needed.

const QUEUE = 'chemistry-test';
const PARACETAMOL = 'CC(=O)Nc1ccc(O)cc1';
/** Minutes of work for one thread: what is ended half-way. */
const LONG: Json = { smiles: 'CCOC(=O)c1ccc(NC(C)=O)cc1F', basis: 'def2-svp' };

let python: string;
let installation: TestInstallation;
let chemistry: SupervisedProcess;
let logFile: string;
let connection: NativeConnection;
let asker: Worker;
let asking: Promise<void>;
let asked = 0;

beforeAll(async () => {
  python = await ensureChemistry((text) => process.stderr.write(`setup: ${text}\n`));
  installation = await startTestInstallation({ processes: [] });
  const { settings, stateDir } = installation;
  logFile = path.join(stateDir, 'logs', 'chemistry.log');
  // Two at a time in each tier, so that a calculation that is to be ended does not keep the next test waiting.
  const env = { GRADUS_CHEMISTRY_SLOTS: '2' };
  chemistry = new SupervisedProcess(chemistryProcess(python, settings, { env }), { logFile });
  await chemistry.up();
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter: 'error' } } });
  connection = await NativeConnection.connect({ address: settings.temporalAddress });
  asker = await Worker.create({
    connection,
    namespace: settings.namespace,
    taskQueue: QUEUE,
    workflowsPath: fileURLToPath(new URL('./client-workflows.ts', import.meta.url)),
  });
  asking = asker.run();
}, 600_000);

afterAll(async () => {
  await chemistry?.stop();
  asker?.shutdown();
  await asking;
  await connection?.close();
  await installation?.remove();
});

function requestOf(verifier: string, subject: Json): TierRequest {
  const digest = createHash('sha256').update(JSON.stringify(subject)).digest('hex');
  return { format: 'gradus.verify/1', verifier, version: '1', digest, subject };
}

function start(request: TierRequest, timeoutSeconds = 600, queue = queueOf(request.verifier)) {
  return installation.runs.client.workflow.start<typeof askTier>('askTier', {
    args: [{ queue, request, timeoutSeconds, heartbeatSeconds: 6 }],
    workflowId: `ask-${++asked}`,
    taskQueue: QUEUE,
  });
}

const queueOf = (verifier: string): string =>
  tierQueue(verifier === 'dft' ? 'high-fidelity' : 'simulation', 'chemistry');

async function ask(verifier: string, subject: Json, timeoutSeconds?: number): Promise<TierAnswer> {
  const request = requestOf(verifier, subject);
  const handle = await start(request, timeoutSeconds);
  const answer = await handle.result();
  const { version, digest } = request;
  expect(answer).toMatchObject({ format: 'gradus.verdict/1', verifier, version, digest });
  expect(answer.spent.seconds).toBeGreaterThan(0);
  expect(Object.values(answer)).not.toContain(null);
  return answer;
}

/** What the worker's last sign of life told, and which attempt it is. */
async function running(
  handle: WorkflowHandle,
  wanted: (details: Record<string, Json>, attempt: number) => boolean,
): Promise<{ pid: number; attempt: number }> {
  return until(
    async () => {
      const { raw } = await handle.describe();
      const [pending] = raw.pendingActivities ?? [];
      const data = pending?.heartbeatDetails?.payloads?.[0]?.data;
      if (!pending || !data) return undefined;
      const details = JSON.parse(Buffer.from(data).toString()) as Record<string, Json>;
      const attempt = pending.attempt ?? 0;
      return typeof details['pid'] === 'number' && wanted(details, attempt)
        ? { pid: details['pid'], attempt }
        : undefined;
    },
    300_000,
    () => `no such sign of life; the worker's log: ${readFileSync(logFile, 'utf8').slice(-2000)}`,
  );
}

const untilGone = (pid: number) =>
  until(
    async () => (isAlive(pid) ? undefined : true),
    30_000,
    () => `process ${pid} lives on`,
  );

async function failureOf(handle: WorkflowHandle): Promise<unknown> {
  const error: unknown = await handle.result().then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(WorkflowFailedError);
  return (error as WorkflowFailedError).cause;
}

test('paracetamol is measured by GFN2-xTB, the same figures each time', async () => {
  const first = await ask('xtb', { smiles: PARACETAMOL });
  if (first.kind !== 'measured') expect.fail(JSON.stringify(first));
  expect(first.values['energy_Eh']).toBeCloseTo(-32.78, 1);
  expect(first.values['gap_eV']).toBeGreaterThan(3);
  expect(first.values['gap_eV']).toBeLessThan(4.5);
  expect(first.evidence).toContain('GFN2-xTB');
  const again = await ask('xtb', { smiles: PARACETAMOL });
  expect(again).toEqual({ ...first, spent: again.spent });
});

test.each([
  ['O', -75.316, 13.3, 1.66],
  ['CO', -114.171, 12.5, 1.38],
])('%s is measured by B3LYP/STO-3G', async (smiles, energy, gap, dipole) => {
  const answer = await ask('dft', { smiles, basis: 'sto-3g' });
  if (answer.kind !== 'measured') expect.fail(JSON.stringify(answer));
  expect(answer.values['energy_Eh']).toBeCloseTo(energy, 2);
  expect(answer.values['gap_eV']).toBeCloseTo(gap, 0);
  expect(answer.values['dipole_D']).toBeCloseTo(dipole, 0);
});

test.each<[string, string, Json, string]>([
  ['an SCF that does not converge', 'dft', { smiles: 'O', basis: 'sto-3g', maxCycles: 1 }, 'no-convergence'],
  ['what cannot be embedded', 'xtb', { smiles: 'C1#CC1' }, 'embedding'],
  ['what is no molecule', 'xtb', { smiles: 'C((' }, 'unreadable'],
  ['what is too large', 'dft', { smiles: 'C'.repeat(30), basis: 'sto-3g' }, 'too-large'],
])('%s is an abstention of its own type', async (_, verifier, subject, type) => {
  const answer = await ask(verifier, subject);
  expect(answer).toMatchObject({ kind: 'abstained', type });
});

test('a calculation that takes too long is given up, and its process is gone', async () => {
  const handle = await start(requestOf('dft', LONG), 8);
  const { pid } = await running(handle, () => true);
  expect(await handle.result()).toMatchObject({ kind: 'abstained', type: 'time-limit' });
  await untilGone(pid);
});

test('a request that no attempt can mend fails at once, with the field that is wrong', async () => {
  const cases: [TierRequest, string, RegExp][] = [
    [requestOf('dft', { smiles: 'C', basis: 'b3lyp' }), queueOf('dft'), /subject\.basis/],
    [requestOf('xtb', { smiles: 'C' }), queueOf('dft'), /belongs to the simulation tier/],
    [{ ...requestOf('xtb', { smiles: 'C' }), digest: 'none' }, queueOf('xtb'), /digest/],
  ];
  for (const [request, queue, why] of cases) {
    const failure = await failureOf(await start(request, 60, queue));
    expect(failure).toBeInstanceOf(ActivityFailure);
    const cause = (failure as ActivityFailure).cause as ApplicationFailure;
    expect(cause).toBeInstanceOf(ApplicationFailure);
    expect(cause).toMatchObject({ type: 'gradus.verifier.bad-request', nonRetryable: true });
    expect(cause.message).toMatch(why);
  }
});

test('a cancelled calculation ends: its process is gone, and the worker serves on', async () => {
  const handle = await start(requestOf('dft', LONG));
  const { pid } = await running(handle, () => true);
  expect(isAlive(pid)).toBe(true);
  await handle.cancel();
  expect(await failureOf(handle)).toBeInstanceOf(CancelledFailure);
  await untilGone(pid);
  expect(await ask('xtb', { smiles: 'CC' })).toMatchObject({ kind: 'measured' });
});

test('a calculation whose process dies is made again, and given up when it dies each time', async () => {
  const worker = chemistry.pid!;
  const handle = await start(requestOf('dft', LONG));
  for (let crash = 0; crash < 3; crash++) {
    const { pid, attempt } = await running(handle, (details) => details['crashes'] === crash);
    expect(attempt).toBe(1);
    process.kill(pid, 'SIGKILL');
    await untilGone(pid);
  }
  const answer = await handle.result();
  expect(answer).toMatchObject({ kind: 'abstained', type: 'crashed' });
  expect(answer).toMatchObject({ reason: expect.stringMatching(/signal 9|nobody saw how/) as string });
  expect(chemistry.pid).toBe(worker);
});

test('a worker that is killed in mid-calculation takes its processes along, and another attempt finishes', async () => {
  const handle = await start(requestOf('dft', { smiles: 'c1ccoc1', basis: 'def2-svp' }));
  const { pid } = await running(handle, () => true);
  process.kill(chemistry.pid!, 'SIGKILL');
  await untilGone(pid);
  await running(handle, (details, attempt) => attempt === 2 && details['pid'] !== pid);
  const answer = await handle.result();
  expect(answer).toMatchObject({ kind: 'measured' });
});

test('the tool of the policy calculates with the same code, and ends with its call', async () => {
  await loadRdkit();
  const estimate = moleculesEnvironment().tools.find(({ name }) => name === 'estimate')!;
  const call = (smiles: string, signal: AbortSignal) =>
    attemptCall(
      estimate,
      { name: 'estimate', arguments: { smiles } },
      {
        idempotencyKey: 'estimate',
        attempt: 1,
        signal,
        heartbeat: () => undefined,
        task: () => Promise.reject(new Error('no task was made')),
      },
    );
  const { signal } = new AbortController();
  const before = process.env[CHEMISTRY_PYTHON];
  try {
    delete process.env[CHEMISTRY_PYTHON];
    await expect(call('CCO', signal)).rejects.toMatchObject({ type: 'no-chemistry', retryable: false });
    process.env[CHEMISTRY_PYTHON] = python;
    expect((await call('CCO', signal)).text).toMatch(/^gap \d+\.\d\d ± .* eV, dipole \d\.\d\d ± .* D$/);
    expect(await call('C1#CC1', signal)).toMatchObject({ error: 'tool-error' });
    const abort = new AbortController();
    const aborted = call(PARACETAMOL, abort.signal);
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    process.env[CHEMISTRY_PYTHON] = '/nowhere/python';
    await expect(call('CCO', signal)).rejects.toMatchObject({ type: 'crashed', retryable: true });
  } finally {
    if (before === undefined) delete process.env[CHEMISTRY_PYTHON];
    else process.env[CHEMISTRY_PYTHON] = before;
  }
});

test('workers end in order when the one who started them is gone, however it went', async () => {
  const kind = chemistryProcess(python, installation.settings, { tiers: ['simulation'] });
  // One in nine aborted while Python was taken down beside the threads of Temporal's client.
  for (let worker = 0; worker < 8; worker++) {
    const child = kind.spawn('inherit');
    const exited = once(child, 'exit');
    await new Promise<void>((resolve, reject) => kind.whenReady(child, () => resolve(), reject));
    (child.stdio[3] as Duplex).destroy();
    expect(await exited).toEqual([0, null]);
  }
});

test('without its Python the chemistry tiers are said to have no worker, and all else starts', async () => {
  const cache = process.env['GRADUS_CACHE'];
  process.env['GRADUS_CACHE'] = path.join(installation.stateDir, 'empty-cache');
  try {
    const workers = await startWorkers(installation.settings, {
      processes: [['tool']],
      plugins: [chemistryPlugin],
    });
    expect(workers.descriptions).toHaveLength(2);
    expect(workers.descriptions[1]).toMatch(
      /simulation and high-fidelity tiers have no worker; .*setup:chemistry/,
    );
    await workers.stop();
  } finally {
    if (cache === undefined) delete process.env['GRADUS_CACHE'];
    else process.env['GRADUS_CACHE'] = cache;
  }
});

test("the Python side's own tests pass", async () => {
  const script = path.resolve(import.meta.dirname, '../../chemistry/run-python.ts');
  const { code, stderr } = await runCommand(process.execPath, ['--import', 'tsx', script]);
  expect(stderr).toMatch(/Ran \d+ tests/);
  expect(code, stderr).toBe(0);
});

test('ends in order when it is asked to, with no task left over', async () => {
  const pid = chemistry.pid!;
  await chemistry.stop();
  expect(isAlive(pid)).toBe(false);
  expect(await readFile(logFile, 'utf8')).not.toMatch(/never retrieved|was destroyed|Fatal/);
});
