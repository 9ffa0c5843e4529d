import { GradusError } from '../../core/errors.ts';

/**
 * For set-ups without arguments: a misspelt flag, or `--help`, must not begin a download.
 * Throws GradusError('spec', 'setup-arguments') where the program was given some.
 */
export function takesNoArguments(given: readonly string[] = process.argv.slice(2)): void {
  if (given.length === 0) return;
  throw new GradusError(
    'spec',
    'setup-arguments',
    `it takes no arguments, and was given ${given.map((one) => JSON.stringify(one)).join(' ')}: leave them out; nothing was set up`,
  );
}
