import path from 'node:path';
import { Command } from 'commander';
import { checkSpec } from './check-beforehand.ts';
import { fail } from './fail.ts';
import { projectEnvironment } from './project.ts';
import { runAndReport } from './run-and-report.ts';
import { readSpec } from './read-spec.ts';
import { withStackFlags } from './stack-flags.ts';
import type { InstallationOptions } from './stack-with-workers.ts';

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

withStackFlags(new Command('demo'))
  .description('Runs the main job: an agent learns to use a calculator.')
  .option('--spec <file>', 'the curriculum', 'examples/calculator.json')
  .option('--json', 'end with one JSON line on stdout; everything else goes to stderr')
  .action((options: DemoOptions) => demo(options).then((code) => process.exit(code), fail))
  .parse();
