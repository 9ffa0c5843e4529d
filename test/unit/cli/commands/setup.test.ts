import { expect, test } from 'vitest';
import type { Command } from 'commander';
import { setupCommand } from '../../../../cli/commands/setup.ts';

/** What is said where `gradus setup ARGUMENTS` is refused. */
async function refusalOf(...args: string[]): Promise<string> {
  let printed = '';
  const quiet = (command: Command): void => {
    command.exitOverride().configureOutput({ writeErr: (text) => void (printed += text) });
    command.commands.forEach(quiet);
  };
  const command = setupCommand();
  quiet(command);
  await expect(command.parseAsync(args, { from: 'user' })).rejects.toThrow();
  return printed;
}

test('a part that there is not is answered with the nearest, or with all of them', async () => {
  expect(await refusalOf('swee')).toContain('there is no swee to set up; did you mean "swe"?');
  const parts = 'chemistry, sandbox, python, torch, corpora, swe, browser';
  expect(await refusalOf('everything')).toContain(`valid: ${parts}`);
});

test('only the sandbox takes --gvisor, and only Python takes names', async () => {
  expect(await refusalOf('browser', '--gvisor')).toContain("unknown option '--gvisor'");
  expect(await refusalOf('swe', 'textworld')).toContain('too many arguments');
  const options = setupCommand().commands.find((part) => part.name() === 'sandbox')!.options;
  expect(options.map(({ long }) => long)).toContain('--gvisor');
});
