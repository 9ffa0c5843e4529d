import { Command } from 'commander';
import { setUp } from '../setup/set-up.ts';
import { didYouMean } from '../../core/spec/strict.ts';
import { note } from '../printable.ts';

interface Part {
  description: string;
  /** What may stand behind its name. */
  takes?: (command: Command) => Command;
  load: () => Promise<unknown>;
}

/** What only some environments need: programs that do their work when they are loaded, as `npm run setup:…` has them. */
const PARTS: Record<string, Part> = {
  chemistry: {
    description: 'RDKit, tblite and PySCF, for the dearer verifiers of molecules: 200 MB to download',
    load: () => import('../../plugins/molecules/chemistry/setup.ts'),
  },
  sandbox: {
    description: 'bubblewrap, in which programs run that a policy wrote',
    takes: (command) =>
      command.option('--gvisor', 'gVisor, too, which is built with Go where it is not there'),
    load: () => import('../setup/setup-sandbox.ts'),
  },
  python: {
    description: 'the Python packages of environments, by name; without a name, which there are',
    takes: (command) => command.argument('[names...]'),
    load: () => import('../setup/setup-python.ts'),
  },
  corpora: {
    description: 'what search-qa-foldoc and search-qa-python search: 15 MB to download, from Debian',
    load: () => import('../../environments/families/search-qa/corpora/setup.ts'),
  },
  swe: {
    description: 'five packages with their tests, and pytest, for the environment swe: 3 MB to download',
    load: () => import('../../environments/families/swe/packages/setup.ts'),
  },
  browser: {
    description: 'Chromium and pages for it, for environments with a browser: 100 MB to download',
    load: () => import('../setup/setup-browser.ts'),
  },
};

/** `gradus setup [PART]`: what is otherwise done at the first use of servers or learner. */
export function setup(): Command {
  const command = new Command('setup').argument('[part]').action(async (part: string | undefined) => {
    if (part !== undefined) {
      const names = Object.keys(PARTS);
      command.error(`error: there is no ${part} to set up${didYouMean(part, names)}`);
    }
    await setUp((text) => note(`setup: ${text}`));
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
