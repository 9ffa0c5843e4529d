import { mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { briefSpec } from '../../test/support/brief-spec.ts';
import { startTestInstallation } from '../../test/support/test-installation.ts';
import type { Progress } from '../../workflows/control/messages.ts';

// A disk that is full in the middle of a run, and has room again: `npx tsx bench/faults/disk-full.ts FOLDER TMP`, two
// folders on small file systems of their own, such as
//   unshare -m sh -c 'mount -t tmpfs -o size=400m s FOLDER; mount -t tmpfs -o size=100m t TMP; npx tsx …'
// The state folder lies in the first, TMPDIR of the workers is the second. Each run must end with the weights of the one
// that was left alone. Prints what pending activities and servers say meanwhile, and a JSON line a run.

const [folder, temporary] = process.argv.slice(2) as [string, string];
const FULL_SECONDS = 30;
const stateDir = path.join(folder, 'state');
await mkdir(stateDir, { recursive: true });
const said = new Set<string>();
const installation = await startTestInstallation({
  stateDir,
  env: { TMPDIR: temporary },
  onEvent: (text) => console.error(`event: ${text}`),
});
const { runs } = installation;

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

async function listen(run: string): Promise<void> {
  const query = `WorkflowId STARTS_WITH '${run}' AND ExecutionStatus = 'Running'`;
  try {
    for await (const { workflowId, runId } of runs.client.workflow.list({ query })) {
      const { raw } = await runs.client.workflow.getHandle(workflowId, runId).describe();
      for (const { activityType, lastFailure } of raw.pendingActivities ?? [])
        if (lastFailure?.message) said.add(`${activityType?.name}: ${lastFailure.message}`);
    }
  } catch (error) {
    said.add(`the server: ${(error as Error).message}`);
  }
}

try {
  const spec = briefSpec({ maxSteps: 6 });
  const alone = await (await runs.start('alone', spec)).result();
  for (const [name, where] of [
    ['state-full', folder],
    ['tmp-full', temporary],
  ] as const) {
    said.clear();
    const handle = await runs.start(name, spec);
    await runs.progress(handle, ({ phase }) => phase === 'rl', 300_000);
    const filler = await fill(where);
    const until = performance.now() + FULL_SECONDS * 1000;
    while (performance.now() < until) {
      await listen(name);
      await delay(1000);
    }
    await rm(filler);
    const result = await Promise.race([
      handle.result(),
      runs
        .progress(handle, ({ status }: Progress) => status === 'waiting', 400_000)
        .then(({ question }) => ({ asked: question })),
    ]);
    const same = 'checkpoint' in result && result.checkpoint.weights === alone.checkpoint.weights;
    console.log(JSON.stringify({ run: name, same, said: [...said], ...(!same && { result }) }));
  }
} finally {
  await installation.remove();
}
process.exit();
