import { spawn } from 'node:child_process';
import path from 'node:path';
import { z } from 'zod';
import { GradusError, messageOf } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import type { Json } from '../../../core/json/json.ts';
import type { ToolContext } from '../../contract/environment.ts';

/** The folder of the package `chemistry`, which is the code of the chemistry worker. */
const MODULES = path.resolve(import.meta.dirname, '../../../plugins/molecules');
const BEAT_MS = 1000;

const findingSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('measured'), values: z.record(z.string(), z.number()) }),
  z.object({ kind: z.literal('abstained'), type: z.string(), reason: z.string() }),
]);
type Finding = z.infer<typeof findingSchema>;

/**
 * A calculation of the chemistry worker's own code in a process of its own, ended when the signal is aborted. Its
 * Python is named by GRADUS_CHEMISTRY_PYTHON, which `npm run dev` sets where `npm run setup:chemistry` has made one.
 * Throws GradusError('infra', 'no-chemistry') without it, and GradusError('tool', 'crashed', retryable).
 */
export async function calculateOnce(
  verifier: string,
  subject: Json,
  { signal, heartbeat }: Pick<ToolContext, 'signal' | 'heartbeat'>,
): Promise<Finding> {
  const python = process.env['GRADUS_CHEMISTRY_PYTHON'];
  if (!python) {
    throw new GradusError(
      'infra',
      'no-chemistry',
      `this tool needs Python: run "${commandLine('setup chemistry')}", and start the workers with chemistry`,
    );
  }
  signal.throwIfAborted();
  const child = spawn(python, ['-m', 'chemistry.calculation_process'], {
    env: { ...process.env, PYTHONPATH: MODULES, PYTHONDONTWRITEBYTECODE: '1', OMP_NUM_THREADS: '1' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const kill = (): void => {
    child.kill('SIGKILL');
  };
  signal.addEventListener('abort', kill, { once: true });
  const timer = setInterval(() => heartbeat({ pid: child.pid ?? null }), BEAT_MS);
  try {
    const { line, how, errors } = await firstLine(child, `${JSON.stringify({ verifier, subject })}\n`);
    signal.throwIfAborted();
    if (line === undefined) {
      const text = `the calculation's process ended (${how}): ${errors.slice(-400)}`;
      throw new GradusError('tool', 'crashed', text, { retryable: true });
    }
    return findingSchema.parse(JSON.parse(line));
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', kill);
    kill();
  }
}

/** What the process says first, or how it ended without a word. */
function firstLine(
  child: ReturnType<typeof spawn>,
  request: string,
): Promise<{ line?: string; how: string; errors: string }> {
  return new Promise((resolve) => {
    let output = '';
    let errors = '';
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const end = output.indexOf('\n');
      if (end >= 0) resolve({ line: output.slice(0, end), how: '', errors });
    });
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors += text));
    child.once('error', (error) => resolve({ how: messageOf(error), errors }));
    child.once('close', (code, signal) => resolve({ how: signal ?? `exit code ${code}`, errors }));
    // It may be gone already, which its end tells.
    child.stdin!.once('error', () => undefined);
    // Left open: the process ends with its input.
    child.stdin!.write(request);
  });
}
