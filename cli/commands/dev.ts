import { Command, InvalidArgumentError } from 'commander';
import { GradusError } from '../../core/errors.ts';
import { commandLine, IN_CHECKOUT } from '../../core/installation.ts';
import { keysFile } from '../../infra/dev/store-keys.ts';
import { DEFAULT_STATE_DIR, storeDir } from '../../infra/dev/state-dir.ts';
import { setUpOnce } from '../setup/set-up-once.ts';
import { findTorch } from '../setup/torch-python.ts';
import { STATE_DIR } from '../connection.ts';
import { checkModules } from '../check-beforehand.ts';
import { alertWebhook, startAlerting } from '../alerting.ts';
import { note, print } from '../printable.ts';
import { packageModules, projectEnvironment } from '../project.ts';
import { withStackFlags } from '../stack-flags.ts';
import { binDir, startInstallation } from '../stack-with-workers.ts';
import { untilInterrupted } from '../until-interrupted.ts';
import type { InstallationOptions } from '../stack-with-workers.ts';
import { shellWord } from '../../environments/sandbox/command.ts';
import { fileOfModule } from '../../environments/host/ready.ts';
import { PLUGINS } from '../../plugins/index.ts';
import { torchProcess } from '../../workers/torch/process.ts';

async function hold(options: InstallationOptions): Promise<void> {
  alertWebhook(options.alertWebhook);
  await checkModules();
  await setUpOnce(note);
  console.log('starting servers and workers …');
  const interrupted = untilInterrupted();
  const installation = await startInstallation({
    dashboard: true,
    ...options,
    env: await projectEnvironment(),
    onEvent: (text) => console.log(text),
  });
  const { stack, workers, settings } = installation;
  const { temporal, objectStore } = stack;
  const example = IN_CHECKOUT ? 'examples/calculator.json' : 'spec.json';
  const variables = exportLine({
    address: settings.temporalAddress,
    bin: binDir(stack.stateDir),
    stateDir: stack.stateDir,
    modules: settings.environmentModules.map((file) => fileOfModule(file)),
    ofPackage: (await packageModules()).files,
  });
  console.log(`
  Temporal      ${temporal.address}   (queue: gradus)
  Temporal UI   ${temporal.uiAddress ?? 'off'}
  dashboard     ${installation.dashboard}
  object store  http://${objectStore.endPoint}:${objectStore.port}   bucket ${objectStore.bucket}
                keys in ${keysFile(storeDir(stack.stateDir))}
  data and logs ${stack.stateDir}
${workers.descriptions.map((description) => `  worker        ${description}`).join('\n')}

In another terminal:

  ${variables}
  ${commandLine(`start ${example} --id my-run`)}
  ${commandLine('runs')}

Ctrl-C stops everything; what is stored stays, and runs go on when it is started again.`);
  const alerting = startAlerting(settings, { say: print, webhook: options.alertWebhook });
  await interrupted;
  console.log('\nstopping …');
  await alerting.stop();
  await installation.stop();
}

/**
 * What another terminal's commands need, as a line of a shell, for whatever folder they are called in: a path may have
 * anything in it. The commands that play episodes need the modules, absolute paths, too; where they are those of
 * package.json they read them there, and see what is changed in it.
 */
export function exportLine(of: {
  address: string;
  bin: string;
  stateDir: string;
  modules: readonly string[];
  ofPackage: readonly string[];
}): string {
  const variables = [`TEMPORAL_ADDRESS=${of.address}`, `PATH=${shellWord(of.bin)}:"$PATH"`];
  if (of.stateDir !== DEFAULT_STATE_DIR) variables.push(`${STATE_DIR}=${shellWord(of.stateDir)}`);
  const modules = of.modules.join(',');
  if (modules !== of.ofPackage.join(',')) variables.push(`GRADUS_ENVIRONMENTS=${shellWord(modules)}`);
  return `export ${variables.join(' ')}`;
}

function parseRanks(text: string): number {
  const ranks = Number(text);
  if (!Number.isInteger(ranks) || ranks < 1) throw new InvalidArgumentError('ranks are a number from 1');
  return ranks;
}

/** Throws GradusError('infra', 'torch-missing') where its packages are not set up. */
async function inTorch(ranks: number): Promise<NonNullable<InstallationOptions['learner']>> {
  const python = await findTorch();
  if (python === undefined) {
    throw new GradusError(
      'infra',
      'torch-missing',
      `PyTorch is not set up: ${commandLine('setup torch')}, then run the command again`,
    );
  }
  return (settings) => torchProcess(python, settings, { ranks });
}

/** `gradus dev` */
export function devCommand(): Command {
  const command = withStackFlags(new Command('dev'));
  for (const { name } of PLUGINS) {
    command.option(
      `--no-${name}`,
      `leave out the ${name} tiers, which are served where "${commandLine(`setup ${name}`)}" has run`,
    );
  }
  command.option(
    '--torch [ranks]',
    `learn in PyTorch, with as many ranks, where "${commandLine('setup torch')}" has run`,
    parseRanks,
  );
  return command.action(
    async ({
      torch,
      ...options
    }: InstallationOptions & Record<string, unknown> & { torch?: number | true }) =>
      hold({
        ...options,
        ...(torch !== undefined && { learner: await inTorch(torch === true ? 1 : torch) }),
        plugins: PLUGINS.filter(({ name }) => options[name] !== false),
      }),
  );
}
