import path from 'node:path';
import { Command } from 'commander';
import { fail } from './fail.ts';
import { runAndReport } from './run-and-report.ts';
import { readSpec } from './run-spec.ts';
import { withStackFlags } from './stack-flags.ts';
import type { InstallationOptions } from './stack-with-workers.ts';

interface DemoOptions extends InstallationOptions {
  spec: string;
  json?: boolean;
}

const demo = async ({ spec, ...options }: DemoOptions): Promise<number> =>
  runAndReport({
    ...options,
    spec: await readSpec(spec),
    workflowId: `demo-${path.basename(spec, '.json')}`,
  });

withStackFlags(new Command('demo'))
  .description('Runs the main job: an agent learns to use a calculator.')
  .option('--spec <file>', 'the curriculum', 'examples/calculator.json')
  .option('--json', 'end with one JSON line on stdout; everything else goes to stderr')
  .action((options: DemoOptions) => demo(options).then((code) => process.exit(code), fail))
  .parse();
