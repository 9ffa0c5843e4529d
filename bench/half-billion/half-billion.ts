import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ids } from '../../core/names.ts';
import type { StepReport } from '../../core/ports.ts';
import { totalTime } from '../../core/time/time-split.ts';
import { killInActivity } from '../../test/support/kill-workers.ts';
import { RunClient } from '../../test/support/run-client.ts';
import { settingsToEnv } from '../../workers/settings.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import { closing, benchRowsOf } from '../bench.ts';
import type { Bench, BenchRow } from '../bench.ts';
import { Child } from '../child.ts';
import { signalsOf } from '../../test/support/histories.ts';
import { durableRun, withInstallation, withTemporaryFolder } from '../installations.ts';
import { watchMemory } from '../processes.ts';
import { ROUNDED } from '../rounded.ts';
import { writeModel } from './model.ts';
import type { BenchPart } from './part-process.ts';
import { halfBillionSpec, STEPS } from './spec.ts';

/** In which the runs come to what is to be killed, and in which a part is done. */
const A_WHILE_MS = 1_200_000;

/**
 * A model of Qwen2.5-0.5B's shape with random weights, as a user would bring it: what each part of its training by LoRA
 * costs, and a durable run of a few steps, once left alone and once with its rollout worker and its learner killed.
 * Needs 23 GB of free memory; `quick` has a model of some thousand weights.
 * Throws when the two runs do not end with the same weights.
 */
export const halfBillionBench: Bench = async function* (options) {
  const rows: BenchRow[] = [];
  const row = (name: string, value: number, unit = 's'): void => {
    options.say(`  ${name}: ${value.toPrecision(4)} ${unit}`);
    rows.push(benchRowsOf('half-billion')(name, unit, unit === 'tokens/s' ? 'more' : 'less', [value]));
  };
  await withTemporaryFolder(async (scratch) => {
    const folder = path.join(scratch, 'model');
    await writeModel(folder, options);
    const modules = { GRADUS_ENVIRONMENTS: fileURLToPath(new URL('babble.ts', import.meta.url)) };
    await withInstallation({ ...options, env: modules }, async (client, { workers, settings }) => {
      const { signal } = options;
      const env = { ...process.env, ...settingsToEnv(settings) };
      const parts: [part: BenchPart, dtype?: RolloutDtype][] = [
        ['import'],
        ['decode'],
        ...ROUNDED.map((dtype): [BenchPart, RolloutDtype] => ['decodeRounded', dtype]),
        ['learn'],
      ];
      for (const [part, dtype] of parts) {
        // One process a part, so that its memory is its own.
        const child = Child.own('half-billion/part-process.ts', { env, signal });
        const asked = child.call(part, { folder, ...(dtype && { dtype }) }, A_WHILE_MS);
        const { figures, peakBytes } = await closing(asked, () => child.close());
        for (const figure of figures as Parameters<typeof row>[]) row(...figure);
        const what = dtype ? `decode in ${dtype}` : part;
        row(`memory of a process that does no more than ${what}`, peakBytes / 2 ** 20, 'MB');
      }
      const runs = await RunClient.connect(settings);
      /** Runs to its end while `meanwhile` goes on, tells what it took, and gives its weights. */
      const toItsEnd = async (how: string, meanwhile: (workflowId: string) => Promise<void>) => {
        const memory = watchMemory(workOf);
        const workflowId = how.replaceAll(' ', '-');
        const run = durableRun(client, halfBillionSpec(), { ...options, workflowId });
        const [{ handle, result, seconds }] = await Promise.all([run, meanwhile(workflowId)]);
        const { byWork, together } = memory.stop();
        const reports = signalsOf(await handle.fetchHistory(), 'stepReported');
        const steps = reports.map(({ value }) => value as StepReport);
        // What no learner step was made of would show nothing.
        const learnt = steps.filter(({ metrics }) => metrics !== null).length;
        if (result.end === 'stopped' || learnt !== STEPS)
          throw new Error(`the run ${how} came to "${result.end}" with ${learnt} of ${STEPS} learner steps`);
        row(`run ${how}: ${STEPS} steps of 2 × 4 episodes of 32 tokens, and reports`, seconds);
        for (const { stageStep, seconds: split } of steps) {
          const parts = Object.entries(split).map(([part, value]) => `${part} ${value.toFixed(1)}`);
          row(`run ${how}, step ${stageStep}: ${parts.join(', ')}`, totalTime(split));
        }
        for (const [what, bytes] of byWork)
          row(`run ${how}, memory of ${what} at its peak`, bytes / 2 ** 20, 'MB');
        row(`run ${how}, memory of all processes at one moment`, together / 2 ** 20, 'MB');
        return result.checkpoint.weights;
      };
      try {
        const ours = await toItsEnd('left alone', () => Promise.resolve());
        const theirs = await toItsEnd('rollout worker and learner killed', async (run) => {
          const at = { workers, runs };
          const group = (step: number): string => ids.group(run, 'rl', step, 0);
          await killInActivity(at, group, 'advance', 'rollout', { timeoutMs: A_WHILE_MS });
          await killInActivity(at, () => ids.stage(run, 'rl'), 'trainStep', 'learner', {
            timeoutMs: A_WHILE_MS,
          });
        });
        if (ours !== theirs)
          throw new Error(`the run left alone ended with ${ours}, the killed one with ${theirs}`);
        options.say(`same final weights: ${ours}`);
      } finally {
        await runs.close();
      }
    });
  });
  yield* rows;
};

/** What a process of an installation does, by its command line; undefined where it does not matter. */
function workOf(words: readonly string[]): string | undefined {
  const main = words.findIndex((word) => word.endsWith('workers/main.ts'));
  if (main >= 0) return `${words[main + 1]} worker`;
  if (words.some((word) => word.endsWith('learner/process.ts'))) return "the learner's own process";
  return /temporal-server|versitygw/.exec(words[0] ?? '')?.[0];
}
