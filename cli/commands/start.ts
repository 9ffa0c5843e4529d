import path from 'node:path';
import { Command } from 'commander';
import { commandLine } from '../../core/installation.ts';
import { STATE_DIR, withConnectionFlags, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import type { curriculum } from '../../workflows/curriculum/curriculum.ts';
import type { Progress } from '../../workflows/control/messages.ts';
import { note, print } from '../printable.ts';
import { readSpec } from '../read-spec.ts';

interface StartOptions extends ConnectionOptions {
  id?: string;
  watch?: boolean;
  check: boolean;
}

/** `gradus start SPEC --id ID`: begins a run that workers which are up go on with. */
export function startCommand(): Command {
  return withConnectionFlags(new Command('start'))
    .argument('<spec>', 'the curriculum, a JSON file')
    .option('--id <id>', "the run's workflow id (default: the file's name)")
    .option('--watch', 'show progress until the end, and what the run waits for')
    .option(
      '--no-check',
      'let only the workers check names of environments, which they may have and this project not',
    )
    .action(async (file: string, { id, watch, check, ...options }: StartOptions) => {
      const spec = await readSpec(file);
      const workflowId = id ?? path.basename(file, '.json');
      // Where servers and workers are another process's of this machine, their environments count.
      const elsewhere = options.stateDir === undefined && process.env['GRADUS_S3_URL'] !== undefined;
      const stateDir = options.stateDir ?? process.env[STATE_DIR];
      if (check) {
        const { checkSpec } = await import('../check-beforehand.ts');
        await checkSpec(spec, workflowId, { stateDir, join: !elsewhere });
      }
      const { claimedName, startRun } = await import('../../runs/control/start.ts');
      await withTemporal(options, async (temporal) => {
        await startRun(temporal, workflowId, spec);
        const run = await claimedName(temporal, workflowId);
        if (run === null) note('it has not begun yet, so its name in the store is not known');
        else print(run);
        if (watch !== true) note(`"${commandLine(`why ${run ?? workflowId}`)}" says what it is at`);
      });
      if (watch === true) await watchIt(options, workflowId, spec);
    });
}

/** Until the run has ended, or whoever looks has seen enough. */
async function watchIt(options: ConnectionOptions, workflowId: string, spec: unknown): Promise<void> {
  const [{ resultWatched }, { confidenceOf, reportRun }, { untilInterrupted }, { queryWorkflow }] =
    await Promise.all([
      import('../watch-run.ts'),
      import('../curriculum-report.ts'),
      import('../until-interrupted.ts'),
      import('../../runs/temporal/ask.ts'),
    ]);
  const interrupted = untilInterrupted().then(() => 'interrupted' as const);
  const started = Date.now();
  await withTemporal(options, async (temporal) => {
    const handle = temporal.workflow.getHandle<typeof curriculum>(workflowId);
    const result = await resultWatched(temporal, handle, print, interrupted);
    if (result === 'interrupted') {
      note('\nno longer watching; the run goes on');
      process.exitCode = 130;
      return;
    }
    const progress = await queryWorkflow<Progress>(temporal, workflowId, 'progress');
    reportRun(result, progress, confidenceOf(spec), (Date.now() - started) / 1000, print);
  });
}
