import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { briefSpec } from '../../test/support/brief-spec.ts';
import { startTestInstallation } from '../../test/support/test-installation.ts';

// The clock of the workers' machine jumps, and the servers' does not: `npx tsx bench/faults/clock-jumps.ts LIBFAKETIME`,
// the path of libfaketimeMT.so.1. Each run must end with the weights of the one before which no clock jumped. Prints what
// pending activities say meanwhile, and a JSON line a run. Linux only.

const [library] = process.argv.slice(2) as [string];
const JUMPS: [name: string, jumps: string[]][] = [
  ['minutes', ['+300', '-300', '+600', '-600']],
  ['hours-ahead', ['+7200']],
  ['hours-back', ['-7200']],
  ['a-year', ['+31536000', '-31536000']],
];
const KEPT_SECONDS = 20;

const folder = await mkdtemp(path.join(tmpdir(), 'gradus-clock-'));
const file = path.join(folder, 'offset');
async function setClock(offset: string): Promise<void> {
  await writeFile(`${file}.new`, `${offset}\n`);
  await rename(`${file}.new`, file);
}
await setClock('+0');
const installation = await startTestInstallation({
  env: {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_NO_CACHE: '0',
  },
  onEvent: (text) => console.error(`event: ${text}`),
});
const { runs } = installation;

async function failuresOf(run: string, said: Set<string>): Promise<void> {
  const query = `WorkflowId STARTS_WITH '${run}' AND ExecutionStatus = 'Running'`;
  for await (const { workflowId, runId } of runs.client.workflow.list({ query })) {
    const { raw } = await runs.client.workflow.getHandle(workflowId, runId).describe();
    for (const { activityType, lastFailure } of raw.pendingActivities ?? [])
      if (lastFailure?.message)
        said.add(
          // Times and keys differ from attempt to attempt.
          `${activityType?.name}: ${lastFailure.message}`.replaceAll(
            /put \S+: it is .* on the server/gu,
            '…',
          ),
        );
  }
}

try {
  const spec = briefSpec({ maxSteps: 6 });
  const alone = await (await runs.start('alone', spec)).result();
  for (const [name, jumps] of JUMPS) {
    const said = new Set<string>();
    const handle = await runs.start(name, spec);
    await runs.progress(handle, ({ phase }) => phase === 'rl', 300_000);
    for (const offset of jumps) {
      await setClock(offset);
      for (let s = 0; s < KEPT_SECONDS; s++) {
        await delay(1000);
        await failuresOf(name, said);
      }
    }
    await setClock('+0');
    const result = await Promise.race([
      handle.result(),
      runs
        .progress(handle, ({ status }) => status === 'waiting', 400_000)
        .then(({ question }) => ({ asked: question })),
    ]);
    const same = 'checkpoint' in result && result.checkpoint.weights === alone.checkpoint.weights;
    console.log(JSON.stringify({ run: name, same, said: [...said], ...(!same && { result }) }));
  }
} finally {
  await installation.remove();
  await rm(folder, { recursive: true });
}
process.exit();
