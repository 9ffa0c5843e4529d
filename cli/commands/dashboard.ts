import { Command } from 'commander';
import { dashboardToken, openDashboard } from '../../dashboard/open.ts';
import { settingsOf, temporalUiOf, withConnectionFlags } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { projectExtensions, projectModules } from '../project.ts';
import { parsePort } from '../stack-flags.ts';
import { note, print } from '../printable.ts';
import { untilInterrupted } from '../until-interrupted.ts';

interface DashboardFlags extends ConnectionOptions {
  actions?: boolean;
  host?: string;
  port?: number;
  allowHost?: string[];
}

/** `gradus dashboard`: the pages, against any Temporal and bucket. */
export function dashboardCommand(): Command {
  return withConnectionFlags(new Command('dashboard'))
    .option('--actions', 'let pages steer runs: pause, decide, give verdicts; read-only otherwise')
    .option('--port <port>', 'default: 8234, or a free one', parsePort)
    .option(
      '--host <address>',
      'listen on this address instead of loopback; every request then needs the token in GRADUS_DASHBOARD_TOKEN',
    )
    .option(
      '--allow-host <name...>',
      'NAME or NAME:PORT that browsers may use, such as that of a proxy in front of it',
    )
    .action(async ({ actions = false, host, port, allowHost, ...options }: DashboardFlags) => {
      const password = dashboardToken();
      if (host === undefined && password !== null)
        note('GRADUS_DASHBOARD_TOKEN is set: loopback needs it, too');
      const interrupted = untilInterrupted();
      const settings = {
        ...(await settingsOf(options)),
        environmentModules: (await projectModules()).files,
        extensionModules: (await projectExtensions()).files,
      };
      const opened = await openDashboard(settings, {
        temporalUi: await temporalUiOf(options),
        actions,
        password,
        ...(host !== undefined && { host }),
        ...(port !== undefined && { port }),
        ...(allowHost !== undefined && { allowedHosts: allowHost }),
      });
      print(
        `${opened.url}   ${actions ? 'it can steer runs' : 'it is read-only (--actions lets it steer)'}; Ctrl-C ends it`,
      );
      await interrupted;
      await opened.close();
    });
}
