import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { settingsFor } from '../../cli/stack-with-workers.ts';
import { startStack } from '../../infra/dev/stack.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { briefSpec } from '../../test/support/brief-spec.ts';
import { onFreePorts } from '../../test/support/free-ports.ts';
import { ladderSpec } from '../../test/support/ladder-installation.ts';
import { RunClient, until } from '../../test/support/run-client.ts';
import { storedFacts } from '../../test/support/stored-facts.ts';
import type { startWorkers as StartWorkers, Workers } from '../../workers/all-in-one.ts';

// Runs that workers of two builds share: one begins a run and is killed in it, the other goes on, and both serve one
// run side by side. `npx tsx bench/faults/older-build.ts FOLDER [RUN…]`, where FOLDER is a checkout of the other build
// with its packages. Each run must end with the weights of the run that this build did alone. Prints a line a run.

const [older, ...only] = process.argv.slice(2);
if (older === undefined) throw new Error('name the folder of the other build');
const builds = { older: path.resolve(older), newer: path.resolve(import.meta.dirname, '../..') };
type Build = keyof typeof builds;

const stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-builds-'));
const stack = await onFreePorts((ports) => startStack(stateDir, { ui: false, ...ports }));
const settings = settingsFor(stack);
const store = await ObjectStore.connect(settings.store);
const runs = await RunClient.connect(settings);
const verdicts = path.join(stateDir, 'verdicts');

async function workersOf(build: Build): Promise<Workers> {
  const root = builds[build];
  const url = pathToFileURL(path.join(root, 'workers/all-in-one.ts')).href;
  const { startWorkers } = (await import(url)) as { startWorkers: typeof StartWorkers };
  const modules = ['ladder-calculator', 'brief-calculator'].map((name) =>
    path.join(root, 'test/support', `${name}.ts`),
  );
  const env = {
    GRADUS_ENVIRONMENTS: modules.join(','),
    GRADUS_TEST_VERDICTS: verdicts,
    GRADUS_HOST_ENV: 'GRADUS_TEST_VERDICTS',
  };
  return startWorkers(settings, {
    logFile: path.join(stateDir, 'logs', `workers-${build}.log`),
    env,
    onEvent: (text) => console.error(`${build}: ${text}`),
  });
}

const near = { verifier: 'near', passAtLeast: 0.5 };
const specs = {
  plain: briefSpec({ maxSteps: 4 }),
  long: briefSpec({ maxSteps: 4, environment: 'calculator-brief' }),
  ladder: ladderSpec([{ ...near, wait: true }], { maxSteps: 4 }),
  watched: watched(),
};

/** A stage whose alarms are heeded. */
function watched() {
  const spec = briefSpec({ maxSteps: 4 });
  const [warmStart, stage] = spec.stages;
  return { ...spec, stages: [warmStart, { ...stage, diagnosis: { 'no-contrast': ['note', 'filter'] } }] };
}

/** A run is handed over when it has done so many steps of the stage. */
const HANDOVERS = [0, 2];

async function serve<T>(build: readonly Build[], use: (workers: Workers[]) => Promise<T>): Promise<T> {
  const workers: Workers[] = [];
  try {
    for (const one of build) workers.push(await workersOf(one));
    return await use(workers);
  } finally {
    await Promise.all(workers.map((one) => one.stop()));
  }
}

const wanted = (name: string): boolean => only.length === 0 || only.some((one) => name.startsWith(one));
let wrong = 0;

function tell(run: string, like: unknown[], got: unknown[]): void {
  const same = JSON.stringify(like) === JSON.stringify(got);
  if (!same) wrong++;
  console.log(JSON.stringify({ run, same, ...(!same && { like, got }) }));
}

async function outcome(run: string): Promise<unknown[]> {
  const result = await runs.client.workflow.getHandle(run).result();
  const { end, steps, checkpoint } = result as {
    end: unknown;
    steps: unknown;
    checkpoint: { weights: string };
  };
  return [end, steps, checkpoint.weights];
}

const facts = async (run: string): Promise<string[]> => storedFacts(store, run);

try {
  const names = Object.keys(specs).filter(wanted) as (keyof typeof specs)[];
  const alone = new Map<string, unknown[]>();
  for (const build of ['newer', 'older'] as const) {
    await serve([build], async () => {
      for (const name of names) {
        await runs.start(`${name}-${build}`, specs[name]);
        alone.set(`${name}-${build}`, await outcome(`${name}-${build}`));
      }
    });
  }
  for (const name of names) tell(`${name}-older`, alone.get(`${name}-newer`)!, alone.get(`${name}-older`)!);
  for (const [from, to] of [
    ['older', 'newer'],
    ['newer', 'older'],
  ] as const) {
    for (const at of HANDOVERS) {
      const handed = names.map((name) => `${name}-${from}-${to}-${at}`);
      await serve([from], async ([workers]) => {
        for (const [i, name] of names.entries()) await runs.start(handed[i]!, specs[name]);
        await Promise.all(
          handed.map((run) =>
            runs.progress(
              runs.client.workflow.getHandle(run),
              ({ phase, step, status }) =>
                status === 'completed' ||
                (phase === 'rl' && (at === 0 || (step?.stage === 'rl' && step.stageStep >= at))),
              300_000,
            ),
          ),
        );
        // In the middle of whatever it does.
        for (const role of ['orchestrator', 'rollout', 'learner'] as const) {
          const pid = workers!.pid(role);
          if (pid !== undefined) process.kill(pid, 'SIGKILL');
        }
      });
      await serve([to], async () => {
        for (const [i, name] of names.entries()) {
          const done = outcome(handed[i]!);
          const waits = until(
            async () => {
              const shown = await runs.client.workflow
                .getHandle(handed[i]!)
                .query<{ status: string; question: unknown }>('progress')
                .catch(() => null);
              return shown?.status === 'waiting' ? [JSON.stringify(shown.question)] : undefined;
            },
            300_000,
            () => `${handed[i]} does not end`,
          );
          waits.catch(() => undefined);
          tell(handed[i]!, alone.get(`${name}-newer`)!, await Promise.race([done, waits]));
        }
      });
    }
  }
  await serve(['older', 'newer'], async () => {
    const both = names.map((name) => `${name}-both`);
    for (const [i, name] of names.entries()) await runs.start(both[i]!, specs[name]);
    for (const [i, name] of names.entries())
      tell(both[i]!, alone.get(`${name}-newer`)!, await outcome(both[i]!));
  });
  for (const name of names) {
    const [one, other] = await Promise.all([facts(`${name}-newer`), facts(`${name}-both`)]);
    console.log(JSON.stringify({ facts: name, equal: JSON.stringify(one) === JSON.stringify(other) }));
  }
} finally {
  await runs.close();
  store.close();
  await stack.stop();
  if (process.env['KEEP'] === undefined) await rm(stateDir, { recursive: true, force: true });
  else console.error(stateDir);
}
process.exit(wrong === 0 ? 0 : 1);
