import path from 'node:path';
import { Command } from 'commander';
import { confidenceOf, reportRun, summarizeRun } from './curriculum-report.ts';
import { fail } from './fail.ts';
import { note, print } from './printable.ts';
import { readSpec, runSpec } from './run-spec.ts';
import { withStackFlags } from './stack-flags.ts';
import type { InstallationOptions } from './stack-with-workers.ts';

interface DemoOptions extends InstallationOptions {
  spec: string;
  json?: boolean;
}

/** Runs a curriculum from servers to report. With `--json` the last line of stdout is one JSON object. */
async function demo({ spec: file, json, ...options }: DemoOptions): Promise<number> {
  const say = json ? note : print;
  const spec = await readSpec(file);
  const workflowId = `demo-${path.basename(file, '.json')}`;
  const outcome = await runSpec({ ...options, spec, workflowId, say }, async (run) => {
    const { result, progress } = run;
    const confidence = confidenceOf(spec);
    const seconds = run.seconds();
    reportRun(result, progress, confidence, seconds, say);
    if (json) print(JSON.stringify(summarizeRun(result, progress, confidence, seconds)));
    return 0;
  });
  return outcome === 'interrupted' ? 130 : outcome;
}

withStackFlags(new Command('demo'))
  .description('Runs the main job: an agent learns to use a calculator.')
  .option('--spec <file>', 'the curriculum', 'examples/calculator.json')
  .option('--json', 'end with one JSON line on stdout; everything else goes to stderr')
  .action((options: DemoOptions) => demo(options).then((code) => process.exit(code), fail))
  .parse();
