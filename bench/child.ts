import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { GradusError, messageOf } from '../core/errors.ts';
import type { Json } from '../core/json/json.ts';
import { TYPESCRIPT } from '../engine/own-module.ts';

/** What every answer has beside its own fields. */
export interface ChildAnswer {
  /** Of the work itself, by the process's own clock. */
  seconds: number;
  /** Most memory that the process ever held. */
  peakBytes: number;
  [field: string]: unknown;
}

/** How long a process may take to end when nothing is asked of it any more. */
const PATIENCE_MS = 10_000;

/**
 * A side of a comparison in a process of its own that answers JSON lines (`serveChild` below, engine/anchors/protocol.py), so
 * that sides can take turns without either paying for the other's start. An abort of `signal` kills it.
 */
export class Child {
  private readonly name: string;
  private readonly process: ChildProcess;
  private readonly failed: Promise<never>;
  private readonly answers: AsyncIterator<string>;
  private words = '';

  constructor(
    name: string,
    command: string,
    args: readonly string[],
    { env = process.env, signal }: { env?: NodeJS.ProcessEnv; signal?: AbortSignal } = {},
  ) {
    this.name = name;
    // A group of its own: a Ctrl-C is for the one who waits for it.
    const options = { env, detached: true, killSignal: 'SIGKILL', ...(signal && { signal }) } as const;
    this.process = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
    this.process.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.words = (this.words + text).slice(-3000);
    });
    // Writing to a process that is gone is told by its end.
    this.process.stdin!.on('error', () => undefined);
    this.failed = new Promise((_, reject) => {
      this.process.once('error', (error) => reject(this.failure(`could not be started: ${error.message}`)));
      this.process.once('close', (code, by) => reject(this.failure(`ended (${by ?? code})`)));
    });
    this.failed.catch(() => undefined);
    this.answers = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]();
  }

  /** A module of ours, in TypeScript. */
  static own(file: string, options: { env?: NodeJS.ProcessEnv; signal?: AbortSignal } = {}): Child {
    const module = path.join(import.meta.dirname, file);
    return new Child(file, process.execPath, ['--import', TYPESCRIPT, module], options);
  }

  /** Throws GradusError('infra', 'anchor') when it fails, ends, prints what is no answer, or takes longer than `limitMs`. */
  async call(op: string, request: { [field: string]: Json } = {}, limitMs = 900_000): Promise<ChildAnswer> {
    this.process.stdin!.write(`${JSON.stringify({ op, ...request })}\n`);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.failure(`gave no answer to "${op}" in ${limitMs} ms`)), limitMs);
    });
    try {
      // What the end of its answers means is said when it has closed.
      const next = this.answers.next().then(({ value, done }) => (done ? this.failed : value));
      const line = await Promise.race([next, this.failed, late]);
      const answer = parse(line);
      if (answer === undefined)
        throw this.failure(`answered "${line.slice(0, 200)}", which is no JSON object`);
      if (answer['error'] !== undefined)
        throw this.failure(`failed at "${op}": ${JSON.stringify(answer['error'])}`);
      return answer as ChildAnswer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends it with its input; one that does not end by that is killed. */
  async close(): Promise<void> {
    this.process.stdin!.end();
    const timer = setTimeout(() => this.process.kill('SIGKILL'), PATIENCE_MS);
    await this.failed.catch(() => undefined);
    clearTimeout(timer);
  }

  private failure(what: string): GradusError {
    const words = this.words.trim();
    const last = words === '' ? '' : `\nits last words: ${words}`;
    return new GradusError('infra', 'anchor', `the anchor ${this.name} ${what}${last}`);
  }
}

function parse(line: string): { [field: string]: unknown } | undefined {
  try {
    const value = JSON.parse(line) as unknown;
    return typeof value === 'object' && value !== null ? (value as { [field: string]: unknown }) : undefined;
  } catch {
    return undefined;
  }
}

/** Gives `use` what `open` starts, and closes all of it afterwards. */
export async function withChildren<T>(use: (keep: (child: Child) => Child) => Promise<T>): Promise<T> {
  const started: Child[] = [];
  try {
    return await use((child) => {
      started.push(child);
      return child;
    });
  } finally {
    await Promise.all(started.map((child) => child.close()));
  }
}

/** The other end of a `Child` that is ours: answers by these operations until there are no more requests. */
export async function serveChild(
  operations: Record<string, (request: never) => Promise<object>>,
): Promise<void> {
  const answer = process.stdout.write.bind(process.stdout);
  // Whatever a library prints must not be taken for an answer.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  for await (const line of createInterface({ input: process.stdin })) {
    const { op, ...request } = JSON.parse(line) as { op: string };
    const started = performance.now();
    const told = await (operations[op] as (request: object) => Promise<object>)(request).then(
      (result) => ({
        seconds: (performance.now() - started) / 1000,
        peakBytes: process.resourceUsage().maxRSS * 1024,
        ...result,
      }),
      (error: unknown) => ({ error: messageOf(error) }),
    );
    answer(`${JSON.stringify(told)}\n`);
  }
}
