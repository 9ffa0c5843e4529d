import path from 'node:path';
import { Command } from 'commander';
import { setUpOnce } from '../setup/set-up-once.ts';
import { checkSpec } from '../check-beforehand.ts';
import { note } from '../printable.ts';
import { projectEnvironment } from '../project.ts';
import { runAndReport } from '../run-and-report.ts';
import { readSpec } from '../read-spec.ts';
import { withStackFlags } from '../stack-flags.ts';
import type { InstallationOptions } from '../stack-with-workers.ts';

interface TrainOptions extends InstallationOptions {
  id?: string;
  json?: boolean;
}

/** `gradus train SPEC`: from the spec to the table of before and after. */
export function trainCommand(): Command {
  return withStackFlags(new Command('train'))
    .argument('<spec>', 'the curriculum, a JSON file')
    .option(
      '--id <id>',
      "the run's workflow id (default: the file's name); the id of an interrupted run resumes it",
    )
    .option('--json', 'end with one JSON line on stdout; everything else goes to stderr')
    .action(async (spec: string, { id, ...options }: TrainOptions) => {
      const written = await readSpec(spec);
      const workflowId = id ?? path.basename(spec, '.json');
      // What was misspelt is said before minutes go into setting up.
      await checkSpec(written, workflowId, { stateDir: options.stateDir, join: true });
      const env = await projectEnvironment();
      await setUpOnce(note);
      process.exitCode = await runAndReport({ ...options, env, spec: written, workflowId, join: true });
    });
}
