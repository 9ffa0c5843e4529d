import { mkdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { keysFile } from '../infra/dev/store-keys.ts';
import { DEFAULT_STATE_DIR, storeDir } from '../infra/dev/state-dir.ts';
import { STATE_DIR } from './connection.ts';
import { fail } from './fail.ts';
import { withStackFlags } from './stack-flags.ts';
import { startInstallation, untilInterrupted } from './stack-with-workers.ts';
import type { InstallationOptions } from './stack-with-workers.ts';

async function dev(options: InstallationOptions): Promise<void> {
  console.log('starting servers and workers …');
  const interrupted = untilInterrupted();
  const installation = await startInstallation({ ...options, onEvent: (text) => console.log(text) });
  const { stack, workers, settings } = installation;
  const { temporal, objectStore } = stack;
  // The cached build is called temporal-cli; people type `temporal`.
  const bin = path.join(stack.stateDir, 'bin');
  await mkdir(bin, { recursive: true });
  await rm(path.join(bin, 'temporal'), { force: true });
  await symlink(temporal.cliPath, path.join(bin, 'temporal'));
  const stateDir = stack.stateDir === DEFAULT_STATE_DIR ? '' : ` ${STATE_DIR}="${stack.stateDir}"`;
  // The commands that play episodes need them, too, from whatever folder they are called.
  const modules = settings.environmentModules.map((file) => path.resolve(file)).join(',');
  const environments = modules === '' ? '' : ` GRADUS_ENVIRONMENTS="${modules}"`;
  console.log(`
  Temporal      ${temporal.address}   (queue: gradus)
  Temporal UI   ${temporal.uiAddress ?? 'off'}
  object store  http://${objectStore.endPoint}:${objectStore.port}   bucket ${objectStore.bucket}
                keys in ${keysFile(storeDir(stack.stateDir))}
  data and logs ${stack.stateDir}
${workers.descriptions.map((description) => `  worker        ${description}`).join('\n')}

In another terminal:

  export TEMPORAL_ADDRESS=${settings.temporalAddress} PATH="${bin}:$PATH"${stateDir}${environments}
  temporal workflow start --type curriculum --task-queue gradus --workflow-id my-run --input-file examples/calculator.json

Ctrl-C stops everything; what is stored stays, and runs go on when it is started again.`);
  await interrupted;
  console.log('\nstopping …');
  await installation.stop();
}

withStackFlags(new Command('dev'))
  .description('Holds servers and workers up until Ctrl-C.')
  .option(
    '--no-chemistry',
    'leave out the chemistry tiers, where "npm run setup:chemistry" has made their Python',
  )
  .action((options: InstallationOptions) => dev(options).then(() => process.exit(0), fail))
  .parse();
