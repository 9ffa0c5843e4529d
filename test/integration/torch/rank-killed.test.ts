import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { ids } from '../../../core/names.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import type { Workers } from '../../../workers/all-in-one.ts';
import { torchProcess } from '../../../workers/torch/process.ts';
import { processesBelow } from '../../support/processes-below.ts';
import { RunClient, until } from '../../support/run-client.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { TORCH_THREADS, withTorch } from '../../support/torch-learner.ts';

// A run whose learner is two ranks under torchrun, of which one is killed.

await withTorch((python) => {
  let stateDir: string;
  let stack: Stack;
  let workers: Workers;
  let runs: RunClient;
  const [warmStart, ...others] = tinySpec({ maxSteps: 4 }).stages;
  const spec = { ...tinySpec(), stages: [{ ...warmStart, updatesPerRound: 8, maxRounds: 1 }, ...others] };
  let alone: string;

  beforeAll(async () => {
    stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-ranks-'));
    stack = await startStack(stateDir, { ui: false });
    const settings = settingsFor(stack, {});
    workers = await startWorkers(settings, {
      processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
      learner: torchProcess(python, settings, { ranks: 2, env: TORCH_THREADS }),
      logFile: path.join(stateDir, 'logs', 'workers.log'),
    });
    runs = await RunClient.connect(settings);
    alone = (await (await runs.start('left-alone', spec)).result()).checkpoint.weights;
  }, 600_000);

  afterAll(async () => {
    await runs?.close();
    await workers?.stop();
    await stack?.stop();
    await rm(stateDir, { recursive: true, force: true });
  });

  const pidOf = (rank: number): number | undefined =>
    processesBelow('main.py').find((pid) => variablesOf(pid).includes(`RANK=${rank}`));

  /** Kills a rank while a step is made, and proves by the next attempt that the kill hit it. */
  async function killRank(rank: number, run: string): Promise<void> {
    const stage = ids.stage(run, 'rl');
    await until(
      async () => {
        const seen = await runs.pending(stage, 'trainStep');
        if (typeof seen === 'string' || !seen.started) return undefined;
        const pid = pidOf(rank);
        if (pid === undefined) return undefined;
        // It stands still until it is known that the step goes on.
        process.kill(pid, 'SIGSTOP');
        const still = await runs.pending(stage, 'trainStep').catch(() => 'none' as const);
        const isHit = typeof still !== 'string' && still.started;
        process.kill(pid, isHit ? 'SIGKILL' : 'SIGCONT');
        if (!isHit) return undefined;
        return until(
          async () => {
            const now = await runs.pending(stage, 'trainStep');
            if (typeof now === 'string') return 'missed';
            return now.attempt > seen.attempt ? 'hit' : undefined;
          },
          300_000,
          () => 'the step was not made again',
        ).then((how) => (how === 'hit' ? true : undefined));
      },
      240_000,
      () => `rank ${rank} was not hit in a step`,
    );
  }

  test.each([1, 0])(
    'rank %i is killed, all are started again, and the run ends with the same weights',
    async (rank) => {
      const killed = await runs.start(`killed-${rank}`, spec);
      await killRank(rank, `killed-${rank}`);
      expect((await killed.result()).checkpoint.weights).toBe(alone);
    },
    600_000,
  );
});

/** As a process was started with them; none of a process that is gone. */
function variablesOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
