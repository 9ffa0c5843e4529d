import { Command } from 'commander';
import { setUp } from '../setup/set-up.ts';
import { didYouMean } from '../../core/did-you-mean.ts';
import { SET_UPS } from '../../environments/families/set-ups.ts';
import type { SetUp } from '../../environments/families/set-ups.ts';
import { PLUGINS } from '../../plugins/index.ts';
import { note } from '../printable.ts';

interface Part extends SetUp {
  /** What may stand behind its name. */
  takes?: (command: Command) => Command;
}

/** What only some environments need: programs that do their work when they are loaded, as `npm run setup:…` has them. */
const PARTS: Record<string, Part> = {
  ...Object.fromEntries(
    PLUGINS.map(({ name, setUp: description, loadSetUp: load }) => [name, { description, load }]),
  ),
  sandbox: {
    description: 'bubblewrap, the sandbox for programs that a policy wrote',
    takes: (command) => command.option('--gvisor', 'gVisor, too; built with Go if it is missing'),
    load: () => import('../setup/setup-sandbox.ts'),
  },
  python: {
    description: 'the Python packages of environments, by name; without a name, lists them',
    takes: (command) => command.argument('[names...]'),
    load: () => import('../setup/setup-python.ts'),
  },
  torch: {
    description: 'PyTorch and transformers, for a learner in PyTorch: 3 GB to download',
    load: () => import('../setup/setup-torch.ts'),
  },
  ...SET_UPS,
  browser: {
    description: 'Chromium and pages for it, for environments with a browser: 100 MB to download',
    load: () => import('../setup/setup-browser.ts'),
  },
};

/** `gradus setup [PART]`: what is otherwise done at the first use of servers or learner, and Temporal's CLI and UI. */
export function setupCommand(): Command {
  const command = new Command('setup').argument('[part]').action(async (part: string | undefined) => {
    if (part !== undefined) {
      const names = Object.keys(PARTS);
      command.error(`error: there is no ${part} to set up${didYouMean(part, names)}`);
    }
    await setUp((text) => note(`setup: ${text}`), { tools: true });
  });
  for (const [name, { description, takes = (part: Command) => part, load }] of Object.entries(PARTS)) {
    takes(command.command(name).description(description)).action(async () => {
      // It reads its arguments as if it had been started by itself.
      process.argv.splice(2, 2);
      await load();
    });
  }
  return command;
}
