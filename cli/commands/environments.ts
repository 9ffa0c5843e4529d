import { Command } from 'commander';
import { messageOf } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import type { Environment, Need } from '../../environments/contract/environment.ts';
import { PLUGINS } from '../../plugins/index.ts';
import type { TierPlugin } from '../../workers/tier-plugin.ts';
import { print } from '../printable.ts';
import { loadProjectEnvironments, projectModules } from '../project.ts';
import { printJson } from '../json/print-json.ts';
import { textTable } from '../../runs/text-table.ts';

interface Listed {
  name: string;
  levels: readonly number[];
  tools: string[];
  verifiers: string[];
  needs: readonly Need[];
}

/** `gradus environments`: what there is, and what of it works here. */
export function environmentsCommand(): Command {
  return new Command('environments')
    .option('--json', 'one JSON object a line')
    .action(async ({ json }: { json?: boolean }) => {
      const modules = await projectModules();
      const loaded = await loadProjectEnvironments(modules);
      const listed = await Promise.all([...loaded.values()].map(listedOf));
      if (json === true) for (const one of listed) printJson('environments', one);
      else {
        print(tableOf(listed));
        // A variable that was set once is forgotten soon, and hides what package.json says.
        if (modules.files.length > 0)
          print(`modules: ${modules.files.join(', ')} (named in ${modules.where})`);
      }
    });
}

async function listedOf(environment: Environment): Promise<Listed> {
  const { name, levels, tools, verifiers } = environment;
  return {
    name,
    levels,
    tools: tools.map((tool) => tool.name),
    verifiers: verifiers.map((verifier) => verifier.name),
    needs: await needsOf(environment),
  };
}

async function needsOf(environment: Environment): Promise<readonly Need[]> {
  const tiers = PLUGINS.filter((plugin) => plugin.environment === environment.name).map(needOf);
  try {
    return [...((await environment.needs?.()) ?? []), ...(await Promise.all(tiers))];
  } catch (error) {
    return [
      { what: `unknown, because its needs() failed: ${messageOf(error)}`, present: false, setUp: 'fix it' },
    ];
  }
}

/** Other processes are none of an environment's business: they serve its tiers. */
const needOf = async ({ name, needs, find }: TierPlugin): Promise<Need> => ({
  what: needs,
  present: (await find()) !== undefined,
  setUp: commandLine(`setup ${name}`),
});

function tableOf(listed: readonly Listed[]): string {
  const rows: (string | number)[][] = [];
  for (const { name, levels, tools, verifiers, needs } of listed) {
    const lines = needs.map(({ what, present, setUp }) =>
      present ? `${what}: there` : `${what}: missing, run ${setUp}`,
    );
    rows.push([
      name,
      levels.join(', '),
      tools.join('\n'),
      verifiers.join('\n'),
      lines.join('\n') || 'nothing',
    ]);
  }
  return textTable(['environment', 'levels', 'tools', 'verifiers', 'needs'], rows);
}
