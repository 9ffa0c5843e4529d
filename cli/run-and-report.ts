import { confidenceOf, reportRun, summarizeRun } from './curriculum-report.ts';
import { note, print } from './printable.ts';
import { runSpec } from './run-spec.ts';
import type { InstallationOptions } from './stack-with-workers.ts';
import { printJson } from './json/print-json.ts';

export interface RunAndReportOptions extends InstallationOptions {
  /** As a person wrote it. */
  spec: unknown;
  workflowId: string;
  /** The last line of stdout is one JSON object; everything else goes to stderr. */
  json?: boolean;
  /** Use servers and workers that another process holds up for the same state folder. */
  join?: boolean;
}

/** Runs a curriculum from servers to the tables of before and after. Returns the exit code. */
export async function runAndReport({ spec, json, ...options }: RunAndReportOptions): Promise<number> {
  const say = json === true ? note : print;
  const outcome = await runSpec({ ...options, spec, say }, async ({ result, progress, seconds }) => {
    const confidence = confidenceOf(spec);
    const taken = seconds();
    reportRun(result, progress, confidence, taken, say);
    if (json === true) printJson('train', summarizeRun(result, progress, confidence, taken));
    return 0;
  });
  return outcome === 'interrupted' ? 130 : outcome;
}
