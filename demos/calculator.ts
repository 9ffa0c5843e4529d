import path from 'node:path';
import { Command } from 'commander';
import { checkSpec } from '../cli/check-beforehand.ts';
import { exit, exitWithReader } from '../cli/exit.ts';
import { fail } from '../cli/fail.ts';
import { projectEnvironment } from '../cli/project.ts';
import { runAndReport } from '../cli/run-and-report.ts';
import { readSpec } from '../cli/read-spec.ts';
import { withStackFlags } from '../cli/stack-flags.ts';
import type { InstallationOptions } from '../cli/stack-with-workers.ts';

interface DemoOptions extends InstallationOptions {
  spec: string;
  json?: boolean;
}

async function demo({ spec: file, ...options }: DemoOptions): Promise<number> {
  const spec = await readSpec(file);
  const workflowId = `demo-${path.basename(file, '.json')}`;
  await checkSpec(spec, workflowId);
  return runAndReport({ ...options, env: await projectEnvironment(), spec, workflowId });
}

exitWithReader();
withStackFlags(new Command('demo'))
  .description('Runs the main job: an agent learns to use a calculator.')
  .option('--spec <file>', 'the curriculum', 'examples/calculator.json')
  .option('--json', 'end with one JSON line on stdout; everything else goes to stderr')
  .action((options: DemoOptions) => demo(options).then(exit, fail))
  .parse();
