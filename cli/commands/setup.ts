import { Command } from 'commander';
import { setUp } from '../../infra/setup/set-up.ts';
import { note } from '../printable.ts';

/** What only some environments need: programs that do their work when they are loaded, as `npm run setup:…` has them. */
const PARTS: Record<string, { description: string; load: () => Promise<unknown> }> = {
  chemistry: {
    description: 'RDKit, tblite and PySCF, for the dearer verifiers of molecules: 200 MB to download',
    load: () => import('../../infra/setup/setup-chemistry.ts'),
  },
  sandbox: {
    description: 'bubblewrap, in which programs run that a policy wrote',
    load: () => import('../../infra/setup/setup-sandbox.ts'),
  },
  browser: {
    description: 'Chromium and pages for it, for environments with a browser: 100 MB to download',
    load: () => import('../../infra/setup/setup-browser.ts'),
  },
};

/** `gradus setup [PART]`: what is otherwise done at the first use of servers or learner. */
export function setup(): Command {
  const command = new Command('setup').action(async () => {
    await setUp((text) => note(`setup: ${text}`));
  });
  for (const [name, { description, load }] of Object.entries(PARTS)) {
    command
      .command(name)
      .description(description)
      .action(async () => void (await load()));
  }
  return command;
}
