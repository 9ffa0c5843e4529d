import { Command } from 'commander';
import { checkpoints } from './commands/checkpoints.ts';
import { exportCommand } from './commands/export.ts';
import { generateCommand } from './commands/generate.ts';
import { importCommand } from './commands/import.ts';
import { ledger } from './commands/ledger.ts';
import { review } from './commands/review.ts';
import { reverify } from './commands/reverify.ts';
import { fail } from './fail.ts';

// Everything that is done to runs and models from a terminal, beside what the Temporal CLI does. One file a command.

const program = new Command('gradus')
  .description('Looks into runs and moves models in and out.')
  .showHelpAfterError('(--help says what there is)')
  .addCommand(checkpoints())
  .addCommand(ledger())
  .addCommand(review())
  .addCommand(generateCommand())
  .addCommand(reverify())
  .addCommand(importCommand())
  .addCommand(exportCommand());

program.parseAsync().then(() => process.exit(), fail);
