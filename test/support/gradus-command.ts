import { stackEnvironment } from '../../infra/dev/stack-addresses.ts';
import type { StackAddresses } from '../../infra/dev/stack-addresses.ts';
import { runCommand } from '../../infra/setup/command.ts';
import type { CommandOptions } from '../../infra/setup/command.ts';
import { assertOutput } from './json-output.ts';
import { ROOT } from './markdown.ts';

/** What `npm run gradus --` has Node run. */
export const COMMAND = 'infra/setup/bootstrap.mjs --bundle cli/gradus-bundled.ts --';

/** `npm run gradus -- …` against servers of a test; says how long it took. Throws where what `--json` has printed is not as its schema says. */
export const gradusCommand =
  (
    stack: StackAddresses,
    more: NodeJS.ProcessEnv = {},
    told: Pick<CommandOptions, 'onLine' | 'onErrorLine'> = {},
  ) =>
  async (...args: string[]) => {
    const env = { ...process.env, ...stackEnvironment(stack), ...more };
    const started = performance.now();
    const done = await runCommand(process.execPath, [...COMMAND.split(' '), ...args], {
      env,
      cwd: ROOT,
      ...told,
    });
    if (args.includes('--json')) assertOutput(args, done.stdout);
    return { ...done, seconds: (performance.now() - started) / 1000 };
  };
