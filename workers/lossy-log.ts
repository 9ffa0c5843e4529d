import process from 'node:process';

/**
 * What cannot be written to a log, whose disk is full or whose reader is gone, is lost, and no reason to end: Node would
 * end the process, with whatever it has under way.
 */
export function loseWhatCannotBeLogged(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}
