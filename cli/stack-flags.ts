import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { IN_CHECKOUT } from '../core/installation.ts';

/** For an option that is a port. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new InvalidArgumentError('a port is a number from 1 to 65535');
  }
  return port;
}

/** The flags that choose ports and folders, the same for every command that starts servers. */
export function withStackFlags(command: Command): Command {
  return command
    .showHelpAfterError(
      IN_CHECKOUT
        ? '(--help lists options; npm passes flags on only after a "--": npm run demo -- --json)'
        : '(--help lists options)',
    )
    .option(
      '--state-dir <dir>',
      `where servers keep their data (default: .gradus in ${IN_CHECKOUT ? 'the checkout' : 'this folder'})`,
    )
    .option('--temporal-port <port>', 'port of the Temporal server (default: 7233, or a free one)', parsePort)
    .option('--ui-port <port>', 'port of the Temporal UI (default: 8233, or a free one)', parsePort)
    .option('--no-ui', "run without Temporal's own web interface")
    .option('--s3-port <port>', 'port of the object store (default: 9000, or a free one)', parsePort)
    .option(
      '--alert-webhook <url>',
      'post alerts there as JSON, besides printing them (default: GRADUS_ALERT_WEBHOOK)',
    )
    .option('--dashboard <port>', 'port of the dashboard (default: 8234, or a free one)', parsePort)
    .option('--no-dashboard', 'run without the dashboard');
}
