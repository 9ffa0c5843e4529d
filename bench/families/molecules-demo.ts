import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';
import { TYPESCRIPT } from '../../engine/own-module.ts';
import type { BenchOptions } from '../bench.ts';
import { withTemporaryFolder } from '../durable-run.ts';
import type { Learnt } from './learnt.ts';

const DEMO = fileURLToPath(new URL('../../demos/molecules.ts', import.meta.url));

const share = z.object({ successes: z.int(), trials: z.int() });
const report = z.object({
  seconds: z.object({ total: z.number() }),
  report: z.object({
    quality: z.object({ before: z.object({ good: share }), after: z.object({ good: share }) }),
  }),
});

/**
 * The molecules' demo in a state folder of its own. Its success is what DFT says: answers that score at least 0.9. The
 * seconds are those of the run; judging its report, with DFT for every different answer, comes after them.
 */
export async function moleculesDemo({ say, signal }: BenchOptions): Promise<Learnt> {
  return withTemporaryFolder(async (folder) => {
    const demo = promisify(execFile)(
      process.execPath,
      ['--import', TYPESCRIPT, DEMO, '--json', '--state-dir', folder, '--page', `${folder}/molecules.svg`],
      { signal, killSignal: 'SIGINT', maxBuffer: 2 ** 30 },
    );
    demo.child.stderr!.setEncoding('utf8').on('data', (text: string) => say(text.trimEnd()));
    const said: unknown = JSON.parse((await demo).stdout);
    const parsed = report.safeParse(said);
    if (!parsed.success) {
      throw new Error(`without DFT there is no figure: npm run setup:chemistry (${parsed.error.message})`);
    }
    const { seconds, report: found } = parsed.data;
    const { before, after } = found.quality;
    return { before: before.good, after: after.good, seconds: seconds.total };
  });
}
