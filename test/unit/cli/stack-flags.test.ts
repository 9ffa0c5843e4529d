import { Command, CommanderError } from 'commander';
import { expect, test } from 'vitest';
import { withStackFlags } from '../../../cli/stack-flags.ts';

/** What a command with the flags says of arguments that it refuses. */
function refusalOf(...given: string[]): string {
  let printed = '';
  const command = withStackFlags(new Command('demo'))
    .exitOverride()
    .configureOutput({ writeErr: (text) => (printed += text) })
    .action(() => {});
  expect(() => command.parse(given, { from: 'user' })).toThrow(CommanderError);
  return printed;
}

test.each([
  // All that is left of `npm run demo --spec FILE`: npm keeps the flag for itself and hands on the rest.
  ['a file whose flag npm has kept', ['examples/calculator.json'], /^error: too many arguments/],
  ['a misspelt flag', ['--state-dr', 'x'], /^error: unknown option '--state-dr'/],
])('%s is refused, and where flags go is said', (_, given, error) => {
  const printed = refusalOf(...given);
  expect(printed).toMatch(error);
  expect(printed).toMatch(/--help lists .* npm run demo -- --json/);
});

test("Temporal's own web interface is there unless it is left out", () => {
  const chosen = (...given: string[]): unknown => {
    const command = withStackFlags(new Command('demo')).action(() => {});
    return command.parse(given, { from: 'user' }).opts()['ui'];
  };
  expect(chosen()).toBe(true);
  expect(chosen('--no-ui')).toBe(false);
});
