import type { Environment } from '../../../contract/environment.ts';
import { sandboxNeeds } from '../../../sandbox/open-sandbox.ts';
import { sweEnvironment } from '../environment.ts';
import { BUGS_VERSION, LEVELS, mutationsOf, packageBug, type PackageBug } from './bugs.ts';
import { PACKAGES } from './packages.ts';
import { packagesNeed, preparedPackage } from './prepared.ts';

const MOST_NAMED = 5;

/** Packages as they are published, with a bug of one token each, and the tests that they bring. */
export function swePackagesEnvironment(): Environment {
  return sweEnvironment<PackageBug>({
    name: 'swe',
    version: BUGS_VERSION,
    levels: LEVELS,
    tools: ['bash', 'view', 'edit', 'search', 'run_tests'],
    long: ['bash', 'run_tests'],
    bug: packageBug,
    prompt: (bug) => {
      const named = bug.failToPass.slice(0, MOST_NAMED).map((test) => `- ${test}`);
      const more = bug.failToPass.length - named.length;
      if (more > 0) named.push(`- and ${more} more`);
      return [
        `This is the source of the Python package ${bug.package}. These of its tests fail:`,
        ...named,
        `Find the bug in ${bug.sources.join(' or ')} and mend it. Changes of tests do not count.`,
      ].join('\n');
    },
    taskCount: (split, level) => mutationsOf(split, level).length,
    prepare: () => {
      for (const { name } of PACKAGES) preparedPackage(name);
    },
    needs: async () => [...(await sandboxNeeds()), packagesNeed()],
  });
}
