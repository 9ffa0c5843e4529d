import { open, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { settingsFor } from '../cli/stack-with-workers.ts';
import { messageOf } from '../core/errors.ts';
import type { Role } from '../core/names.ts';
import { usageOfTree } from '../environments/sandbox/linux/process-tree.ts';
import { startStack } from '../infra/dev/stack.ts';
import { ObjectStore } from '../store/objects/object-store.ts';
import { briefSpec } from '../test/support/brief-spec.ts';
import { onFreePorts } from '../test/support/free-ports.ts';
import { ladderSpec } from '../test/support/ladder-installation.ts';
import { RunClient } from '../test/support/run-client.ts';
import { storedFacts } from '../test/support/stored-facts.ts';
import { startTestInstallation } from '../test/support/test-installation.ts';
import type { TestInstallation } from '../test/support/test-installation.ts';
import { hardestGoal } from '../test/support/tiny-spec.ts';
import { PROCESSES } from '../workers/all-in-one.ts';
import type { startWorkers as StartWorkers, Workers } from '../workers/all-in-one.ts';
import type { Progress } from '../workflows/control/messages.ts';
import { closing, benchRowsOf, chosenNames } from './bench.ts';
import type { Bench, BenchOptions, BenchRow } from './bench.ts';
import { withTemporaryFolder } from './installations.ts';
import { processBytes, sum } from './processes.ts';

// Faults that no test can make: a row is 1 where a run came to the weights of the one that was left alone, else 0. What
// a fault needs of the machine is named by a variable. Linux only.

function needed(variable: string, what: string): string {
  const value = process.env[variable];
  if (value === undefined) throw new Error(`set ${variable} to ${what}`);
  return value;
}

const alike = (bench: string, name: string, same: boolean): BenchRow =>
  benchRowsOf(bench)(
    `${name}: the weights of the run that was left alone`,
    'of 1',
    'more',
    [same ? 1 : 0],
    1,
  );

/** While a run is in RL `trouble` goes on. Says what pending activities and servers say meanwhile, every second. */
async function troubled(
  bench: string,
  { runs }: TestInstallation,
  troubles: Readonly<Record<string, (wait: (seconds: number) => Promise<void>) => Promise<void>>>,
  { say, signal }: BenchOptions,
): Promise<BenchRow[]> {
  const spec = briefSpec({ maxSteps: 6 });
  const alone = await (await runs.start('alone', spec)).result();
  const rows: BenchRow[] = [];
  for (const [name, trouble] of Object.entries(troubles)) {
    const printed = new Set<string>();
    const handle = await runs.start(name, spec);
    await runs.progress(handle, ({ phase }) => phase === 'rl', 300_000);
    await trouble(async (seconds) => {
      const until = performance.now() + 1000 * seconds;
      while (performance.now() < until) {
        await failures(runs, name, printed);
        await delay(1000, undefined, { signal });
      }
    });
    const result = await outcome(runs, handle);
    const same = !('question' in result) && result.checkpoint.weights === alone.checkpoint.weights;
    say(`${name}: ${[...printed].join('\n  ')}${same ? '' : `\n  ${JSON.stringify(result)}`}`);
    rows.push(alike(bench, name, same));
  }
  return rows;
}

/** What a run came to, or the question that it waits with. */
async function outcome(runs: RunClient, handle: Awaited<ReturnType<RunClient['start']>>) {
  const goesOn = new Set(['running', 'paused', 'stopping']);
  const shown = await runs.progress(handle, ({ status }) => !goesOn.has(status), 900_000);
  return shown.status === 'waiting' ? shown : handle.result();
}

async function failures({ client }: RunClient, run: string, printed: Set<string>): Promise<void> {
  const query = `WorkflowId STARTS_WITH '${run}' AND ExecutionStatus = 'Running'`;
  try {
    for await (const { workflowId, runId } of client.workflow.list({ query })) {
      const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
      for (const { activityType, lastFailure } of raw.pendingActivities ?? []) {
        // Times and keys differ from attempt to attempt.
        const words = lastFailure?.message?.replaceAll(/put \S+: it is .* on the server/gu, '…');
        if (words) printed.add(`${activityType?.name}: ${words}`);
      }
    }
  } catch (error) {
    printed.add(`the server: ${messageOf(error)}`);
  }
}

/**
 * A disk that is full for 30 s in the middle of a run, and has room again: that of servers and logs, and that of the
 * workers' temporary files. Both are small file systems of their own, such as
 * `unshare -m sh -c 'mount -t tmpfs -o size=400m s FOLDER; mount -t tmpfs -o size=100m t TMP; npm run bench -- faults:disk'`.
 */
export const diskBench: Bench = async function* (options) {
  const [folder, temporary] = needed('GRADUS_BENCH_DISKS', 'two folders, FOLDER:TMP').split(':') as [
    string,
    string,
  ];
  const installation = await startTestInstallation({
    stateDir: path.join(folder, 'state'),
    env: { TMPDIR: temporary },
    onEvent: options.say,
  });
  const full = (where: string) => async (wait: (seconds: number) => Promise<void>) => {
    const filler = await fill(where);
    await wait(30);
    await rm(filler);
  };
  const troubles = { 'state-full': full(folder), 'tmp-full': full(temporary) };
  yield* await closing(troubled('faults:disk', installation, troubles, options), () => installation.remove());
};

/** Takes all the room that there is. */
async function fill(where: string): Promise<string> {
  const file = path.join(where, 'filler');
  const handle = await open(file, 'w');
  for (const size of [2 ** 20, 2 ** 12, 1]) {
    const piece = Buffer.alloc(size);
    try {
      for (;;) await handle.write(piece);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  await handle.close();
  return file;
}

const JUMPS = {
  minutes: ['+300', '-300', '+600', '-600'],
  'hours-ahead': ['+7200'],
  'hours-back': ['-7200'],
  'a-year': ['+31536000', '-31536000'],
};

/** The clock of the workers' machine jumps for 20 s each, and the servers' does not. */
export const clockBench: Bench = async function* (options) {
  const library = needed('GRADUS_BENCH_FAKETIME', 'the path of libfaketimeMT.so.1');
  yield* await withTemporaryFolder(async (folder) => {
    const file = path.join(folder, 'offset');
    const setClock = async (offset: string): Promise<void> => {
      await writeFile(`${file}.new`, `${offset}\n`);
      await rename(`${file}.new`, file);
    };
    await setClock('+0');
    const env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_NO_CACHE: '0',
    };
    const jumping = (jumps: readonly string[]) => async (wait: (seconds: number) => Promise<void>) => {
      for (const offset of jumps) {
        await setClock(offset);
        await wait(20);
      }
      await setClock('+0');
    };
    const troubles = Object.fromEntries(
      Object.entries(JUMPS).map(([name, jumps]) => [name, jumping(jumps)] as const),
    );
    const installation = await startTestInstallation({ env, onEvent: options.say });
    return closing(troubled('faults:clock', installation, troubles, options), () => installation.remove());
  });
};

/** Many runs at once, of which all are to end, or many steps of one: nothing ends it before its last step. */
function enduringSpec(maxSteps: number, updatesPerRound: number, everySteps: number) {
  const tiny = briefSpec({ maxSteps });
  const [warmStart, stage] = tiny.stages;
  const graduation = { successAtLeast: hardestGoal(8, maxSteps / everySteps), tasks: 8, everySteps };
  const stages = [
    { ...warmStart, updatesPerRound },
    { ...stage, groupsPerStep: 2, graduation },
  ];
  return { ...tiny, seed: 5, stages };
}

/** Resident memory, MB: of a worker's own process, of those that it has started, and of the servers. */
function memory({ workers, stack }: TestInstallation): Record<string, number> {
  const of = (pids: readonly number[]): number =>
    Math.round(sum(pids.map((pid) => processBytes(pid, 'VmRSS'))) / 2 ** 20);
  const roles = (PROCESSES as [Role][]).flatMap(([role]): [string, number][] => {
    const pid = workers.pid(role);
    if (pid === undefined) return [];
    const below = usageOfTree(pid).pids.filter((one) => one !== pid);
    return [
      [role, of([pid])],
      [`${role}, below`, of(below)],
    ];
  });
  const servers = { temporal: of([stack.temporal.pid]), 'object store': of([stack.objectStore.pid]) };
  return { ...Object.fromEntries(roles), ...servers };
}

/** What stays of memory when a hundred runs are started at once (`--runs`), as rows after the tenth and the last of them. */
export const queueBench: Bench = async function* (options) {
  const count = options.runs ?? (options.quick ? 4 : 100);
  const installation = await startTestInstallation();
  const row = benchRowsOf('faults:queue');
  try {
    const started = performance.now();
    const spec = enduringSpec(1, 2, 1);
    const names = Array.from({ length: count }, (_, i) => `queued-${i}`);
    const handles = await Promise.all(names.map((name) => installation.runs.start(name, spec)));
    const weights = new Set<string>();
    const [ends, rows]: [number[], BenchRow[]] = [[], []];
    const follow = async (handle: (typeof handles)[number]): Promise<void> => {
      weights.add((await handle.result()).checkpoint.weights);
      ends.push((performance.now() - started) / 1000);
      options.say(`${ends.length} of ${count} have ended: ${JSON.stringify(memory(installation))}`);
      if (![Math.min(10, count), count].includes(ends.length)) return;
      for (const [who, megabytes] of Object.entries(memory(installation)))
        rows.push(row(`memory of ${who} when ${ends.length} have ended`, 'MB', 'less', [megabytes]));
    };
    await Promise.all(handles.map(follow));
    yield row(`${count} runs at once: different weights`, 'weights', 'less', [weights.size], 1);
    yield row('the first run ends after', 's', 'less', [ends[0]!]);
    yield row('the last run ends after', 's', 'less', [ends.at(-1)!]);
    yield* rows;
  } finally {
    await installation.remove();
  }
};

/** What stays of memory in a run of 200 steps, as rows on the way. */
export const stepsBench: Bench = async function* (options) {
  const count = options.quick ? 8 : 200;
  const installation = await startTestInstallation();
  const { runs } = installation;
  try {
    const handle = await runs.start('endurance', enduringSpec(count, 100, count / 4));
    for (let at = count / 4; at < count; at += count / 4) {
      const reached = ({ status, step }: Progress): boolean =>
        status !== 'running' || (step?.step ?? 0) >= at;
      const { step } = await runs.progress(handle, reached, 3_600_000);
      for (const [who, megabytes] of Object.entries(memory(installation)))
        yield benchRowsOf('faults:steps')(`memory of ${who} at step ${step?.step}`, 'MB', 'less', [
          megabytes,
        ]);
    }
    const { end, steps } = await handle.result();
    options.say(`${end} after ${steps} steps`);
  } finally {
    await installation.remove();
  }
};

type Build = 'older' | 'newer';

/** When a run is handed over: steps of the stage that it has done. */
const HANDOVERS = [0, 2];

/**
 * Runs that workers of two builds share: one begins a run and is killed in it, the other goes on, and both serve one run
 * side by side. The other build is a checkout with its packages. `--only` names kinds of runs.
 */
export const buildsBench: Bench = async function* (options) {
  const folder = path.resolve(needed('GRADUS_BENCH_OLDER', 'the folder of another build'));
  const builds = { older: folder, newer: path.resolve(import.meta.dirname, '..') };
  const bench = 'faults:builds';
  const plain = briefSpec({ maxSteps: 4 });
  const [warmStart, stage] = plain.stages;
  const diagnosis = { 'no-contrast': ['note', 'filter'] };
  const specs: Record<string, object> = {
    plain,
    long: briefSpec({ maxSteps: 4, environment: 'calculator-brief' }),
    ladder: ladderSpec([{ verifier: 'near', passAtLeast: 0.5, wait: true }], { maxSteps: 4 }),
    watched: { ...plain, stages: [warmStart, { ...stage, diagnosis }] },
  };
  const names = chosenNames(Object.keys(specs), options);
  yield* await withTemporaryFolder(async (stateDir) => {
    const stack = await onFreePorts((ports) => startStack(stateDir, { ui: false, ...ports }));
    const settings = settingsFor(stack);
    const store = await ObjectStore.connect(settings.store);
    const runs = await RunClient.connect(settings);

    const workersOf = async (build: Build): Promise<Workers> => {
      const url = pathToFileURL(path.join(builds[build], 'workers/all-in-one.ts')).href;
      const { startWorkers } = (await import(url)) as { startWorkers: typeof StartWorkers };
      const modules = ['ladder-calculator', 'brief-calculator'].map((name) =>
        path.join(builds[build], 'test/support', `${name}.ts`),
      );
      const env = {
        GRADUS_ENVIRONMENTS: modules.join(','),
        GRADUS_TEST_VERDICTS: path.join(stateDir, 'verdicts'),
        GRADUS_HOST_ENV: 'GRADUS_TEST_VERDICTS',
      };
      const logFile = path.join(stateDir, 'logs', `workers-${build}.log`);
      return startWorkers(settings, { logFile, env, onEvent: (text) => options.say(`${build}: ${text}`) });
    };
    const serve = async (by: readonly Build[], use: (workers: Workers[]) => Promise<void>): Promise<void> => {
      const workers: Workers[] = [];
      try {
        for (const build of by) workers.push(await workersOf(build));
        await use(workers);
      } finally {
        await Promise.all(workers.map((one) => one.stop()));
      }
    };
    const start = (how: string) =>
      Promise.all(names.map((name) => runs.start(`${name}-${how}`, specs[name])));
    /** What each came to, or what it asks. */
    const outcomes = (handles: Awaited<ReturnType<typeof start>>): Promise<string[]> =>
      Promise.all(
        handles.map(async (handle) => {
          const result = await outcome(runs, handle);
          if ('question' in result) return JSON.stringify(result.question);
          return [result.end, result.steps, result.checkpoint.weights].join(', ');
        }),
      );

    const rows: BenchRow[] = [];
    let alone: string[] = [];
    const tell = (how: string, ends: readonly string[]): void => {
      for (const [i, name] of names.entries()) {
        if (ends[i] !== alone[i]) options.say(`${name}-${how}: ${ends[i]}, alone ${alone[i]}`);
        rows.push(alike(bench, `${name}, ${how}`, ends[i] === alone[i]));
      }
    };
    try {
      await serve(['newer'], async () => void (alone = await outcomes(await start('newer'))));
      await serve(['older'], async () => tell('older', await outcomes(await start('older'))));
      for (const [from, to] of [
        ['older', 'newer'],
        ['newer', 'older'],
      ] as const) {
        for (const at of HANDOVERS) {
          const how = `${from}-${to}-${at}`;
          let handed: Awaited<ReturnType<typeof start>> = [];
          await serve([from], async ([workers]) => {
            handed = await start(how);
            const far = (handle: (typeof handed)[number]) =>
              runs.progress(
                handle,
                ({ phase, step, status }) =>
                  status === 'completed' ||
                  (phase === 'rl' && (at === 0 || (step?.stage === 'rl' && step.stageStep >= at))),
                300_000,
              );
            await Promise.all(handed.map(far));
            // In the middle of whatever it does.
            for (const role of ['orchestrator', 'rollout', 'learner'] as const) {
              const pid = workers!.pid(role);
              if (pid !== undefined) process.kill(pid, 'SIGKILL');
            }
          });
          await serve([to], async () => tell(how, await outcomes(handed)));
        }
      }
      await serve(['older', 'newer'], async () => tell('both', await outcomes(await start('both'))));
      for (const name of names) {
        const [one, other] = [
          await storedFacts(store, `${name}-newer`),
          await storedFacts(store, `${name}-both`),
        ];
        options.say(`facts of ${name}: ${one.join() === other.join() ? 'equal' : 'they differ'}`);
      }
      return rows;
    } finally {
      await runs.close();
      store.close();
      await stack.stop();
    }
  });
};
