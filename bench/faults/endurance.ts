import { readFileSync } from 'node:fs';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Role } from '../../core/names.ts';
import { usageOfTree } from '../../environments/sandbox/linux/process-tree.ts';
import { PROCESSES } from '../../workers/all-in-one.ts';
import { briefSpec } from '../../test/support/brief-spec.ts';
import { hardestGoal } from '../../test/support/tiny-spec.ts';
import { startTestInstallation } from '../../test/support/test-installation.ts';

// What stays of memory, and whether all that is started ends: `npx tsx bench/faults/endurance.ts queue [RUNS]` starts so
// many runs at once, `… steps [STEPS]` one run of so many steps. Each prints a JSON line now and then with the resident
// memory of every process, MB, and one at the end. Linux only.

const [what = 'queue', written] = process.argv.slice(2);
const count = Number(written ?? (what === 'queue' ? 100 : 200));
const installation = await startTestInstallation();
const { runs, workers } = installation;

const residentMb = (pid: number): number => {
  const line = /^VmRSS:\s+(\d+) kB$/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Math.round(Number(line?.[1] ?? 0) / 1024);
};

/** By process: a worker's own, and those that it has started. */
function memory(): Record<string, number> {
  const all: Record<string, number> = {};
  const note = (name: string, pid: number | undefined): void => {
    if (pid === undefined) return;
    try {
      all[name] = (all[name] ?? 0) + residentMb(pid);
    } catch {
      // It has ended meanwhile.
    }
  };
  for (const [role] of PROCESSES as [Role][]) {
    const pid = workers.pid(role);
    note(role, pid);
    if (pid !== undefined)
      for (const below of usageOfTree(pid).pids) if (below !== pid) note(`${role}, below`, below);
  }
  note('temporal', installation.stack.temporal.pid);
  note('object store', installation.stack.objectStore.pid);
  return all;
}

const line = (told: object): void => console.log(JSON.stringify({ ...told, memory: memory() }));
const started = performance.now();
const seconds = (): number => Math.round((performance.now() - started) / 1000);

const tiny = briefSpec({ maxSteps: what === 'queue' ? 1 : count });
const [warmStart, stage] = tiny.stages;
const spec = {
  ...tiny,
  stages: [
    { ...warmStart, updatesPerRound: what === 'queue' ? 2 : 100 },
    {
      ...stage,
      groupsPerStep: 2,
      // Nothing ends it before its last step.
      graduation: {
        successAtLeast: hardestGoal(8, what === 'queue' ? 1 : count / 50),
        tasks: 8,
        everySteps: what === 'queue' ? 1 : 50,
      },
    },
  ],
};

try {
  line({ at: 'begin' });
  if (what === 'queue') {
    const handles = await Promise.all(
      Array.from({ length: count }, (_, i) => runs.start(`queued-${i}`, { ...spec, seed: 5 })),
    );
    const ends: { weights: string; seconds: number }[] = [];
    const failed: string[] = [];
    const follow = async (handle: (typeof handles)[number]): Promise<void> => {
      try {
        const { checkpoint } = await handle.result();
        ends.push({ weights: checkpoint.weights, seconds: seconds() });
        if (ends.length % 10 === 0) line({ at: ends.length, seconds: seconds() });
      } catch (error) {
        let cause = error;
        while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
        failed.push(messageOf(cause));
      }
    };
    await Promise.all(handles.map(follow));
    const { length: digests } = [...new Set(ends.map(({ weights }) => weights))];
    const [first, last] = [ends[0]?.seconds, ends.at(-1)?.seconds];
    line({ at: 'end', ended: ends.length, digests, firstAfter: first, lastAfter: last, failed });
  } else {
    const handle = await runs.start('endurance', spec);
    for (let told = 0; told < count; told += 10) {
      const { step, status } = await runs.progress(
        handle,
        (shown) => shown.status !== 'running' || (shown.step?.step ?? 0) >= told,
        600_000,
      );
      line({ at: step?.step, seconds: seconds() });
      if (status !== 'running') break;
    }
    const { end, steps } = await handle.result();
    line({ at: 'end', end, steps, seconds: seconds() });
  }
} catch (error) {
  if (!(error instanceof GradusError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await installation.remove();
}
