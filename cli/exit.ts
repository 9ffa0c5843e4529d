import { constants } from 'node:os';

const STREAMS = [process.stdout, process.stderr] as const;

/** Ends the process once all that it printed is taken: `process.exit` alone drops what a slow reader of a pipe has not read. */
export async function exit(code = process.exitCode): Promise<never> {
  await Promise.all(STREAMS.map((stream) => new Promise<void>((taken) => stream.write('', () => taken()))));
  process.exit(code);
}

/** A reader that has seen enough, as `head` has, ends a command without a word, as it ends other programs. */
export function exitWithReader(): void {
  for (const stream of STREAMS)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit(128 + constants.signals.SIGPIPE);
    });
}
