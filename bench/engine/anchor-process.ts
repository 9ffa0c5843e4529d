import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';

/** What every answer has beside its own fields. */
export interface AnchorAnswer {
  /** Of the work itself, by the anchor's own clock. */
  seconds: number;
  /** Most memory that the process ever held. */
  peakBytes: number;
  [field: string]: unknown;
}

/**
 * An engine that is compared with, in a process of its own that answers JSON lines (anchors/protocol.py): runs of it and
 * of ours can take turns without either paying for the other's start.
 */
export class AnchorProcess {
  private readonly name: string;
  private readonly child: ChildProcess;
  private readonly failed: Promise<never>;
  private readonly answers: AsyncIterator<string>;
  private words = '';

  constructor(name: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.name = name;
    this.child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.words = (this.words + text).slice(-3000);
    });
    // Writing to a process that is gone is told by its end.
    this.child.stdin!.on('error', () => undefined);
    this.failed = new Promise((_, reject) => {
      this.child.once('error', (error) => reject(this.failure(`could not be started: ${error.message}`)));
      this.child.once('close', (code, signal) => reject(this.failure(`ended (${signal ?? code})`)));
    });
    this.failed.catch(() => undefined);
    this.answers = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]();
  }

  /** Throws GradusError('infra', 'anchor') when it fails, ends, prints what is no answer, or takes longer than `limitMs`. */
  async call(op: string, request: { [field: string]: Json } = {}, limitMs = 900_000): Promise<AnchorAnswer> {
    this.child.stdin!.write(`${JSON.stringify({ op, ...request })}\n`);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.failure(`gave no answer to "${op}" in ${limitMs} ms`)), limitMs);
    });
    try {
      const line = await Promise.race([this.nextLine(), this.failed, late]);
      const answer = parse(line);
      if (answer === undefined)
        throw this.failure(`answered "${line.slice(0, 200)}", which is no JSON object`);
      if (answer['error'] !== undefined)
        throw this.failure(`failed at "${op}": ${JSON.stringify(answer['error'])}`);
      return answer as AnchorAnswer;
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.failed.catch(() => undefined);
  }

  private async nextLine(): Promise<string> {
    const { value, done } = await this.answers.next();
    // What its end means is said when it has closed.
    return done ? this.failed : value;
  }

  private failure(what: string): GradusError {
    const words = this.words.trim();
    return new GradusError(
      'infra',
      'anchor',
      `the anchor ${this.name} ${what}${words === '' ? '' : `\nits last words: ${words}`}`,
    );
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
