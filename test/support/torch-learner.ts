import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe } from 'vitest';
import { findTorch } from '../../cli/setup/torch-python.ts';
import { torchCommand } from '../../workers/torch/process.ts';

const HOW = 'npm run setup:torch';

/** Tests against the PyTorch learner; where its packages are not set up, it says so and skips them. */
export async function withTorch(tests: (python: string) => void): Promise<void> {
  const python = await findTorch();
  if (python === undefined) console.warn(`SKIPPED: tests of the PyTorch learner need its packages: ${HOW}`);
  describe.skipIf(python === undefined)(python ? 'torch' : `torch (skipped: ${HOW})`, () => tests(python!));
}

/** For a learner that computes beside other work. */
export const TORCH_THREADS = { GRADUS_TORCH_THREADS: '1', OMP_NUM_THREADS: '1' };

type Activity = 'trainStep' | 'scoreTokens' | 'probePolicy';
type Answer<Result> = { result: Result } | { failure: { type: string; retryable: boolean; message: string } };

/** The PyTorch learner without Temporal: it answers lines of JSON. */
export class TorchLines {
  readonly process: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(python: string, surroundings: NodeJS.ProcessEnv, ranks = 1) {
    this.process = spawn(python, [...torchCommand(ranks), '--stdin'], {
      env: { ...surroundings, ...TORCH_THREADS, PYTHONDONTWRITEBYTECODE: '1' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.lines = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]();
  }

  async ask<Result>(activity: Activity, request: object): Promise<Answer<Result>> {
    this.process.stdin!.write(`${JSON.stringify({ activity, request })}\n`);
    const { value, done } = await this.lines.next();
    if (done === true) throw new Error('the PyTorch learner ended before its answer');
    return JSON.parse(value) as Answer<Result>;
  }

  /** The same, of what must not fail. */
  async result<Result>(activity: Activity, request: object): Promise<Result> {
    const answer = await this.ask<Result>(activity, request);
    if ('failure' in answer) throw new Error(`${answer.failure.type}: ${answer.failure.message}`);
    return answer.result;
  }

  async close(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.stdin!.end();
    await ended;
  }
}
