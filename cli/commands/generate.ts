import process from 'node:process';
import { createInterface } from 'node:readline/promises';
import { Command } from 'commander';
import { PolicyPool } from '../../activities/rollout/policy-pool.ts';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import { GradusError } from '../../core/errors.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { HostedEnvironment, hostedHere } from '../../environments/host/hosted-environment.ts';
import { parseCheckpointName } from '../checkpoint-name.ts';
import { settingsOf, withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { numberFrom, wholeFrom } from '../numbers.ts';
import { playEpisode } from '../play-episode.ts';
import { printable } from '../../core/printable.ts';
import { suggestion } from '../../core/did-you-mean.ts';
import { loadProjectEnvironments, projectModules } from '../project.ts';
import type { PlaySettings } from '../play-episode.ts';

interface GenerateOptions extends ConnectionOptions, PlaySettings {
  environment?: string;
  prompt?: string;
}

/** `gradus generate RUN`: a checkpoint at the other end of the terminal. */
export function generateCommand(): Command {
  return withConnectionFlags(new Command('generate'))
    .argument('<run>', 'RUN, its last checkpoint, or RUN@STEP', parseCheckpointName)
    .option('--prompt <text>', 'answer only this prompt (default: standard input, line by line)')
    .option('--environment <name>', 'offer the tools of this environment, which really run')
    .option('--temperature <t>', 'sampling temperature; 0 takes the likeliest token', numberFrom(0, 100), 1)
    .option('--top-k <k>', 'sample among the k likeliest tokens; 0: among all', wholeFrom(0), 0)
    .option(
      '--top-p <p>',
      'sample among the likeliest tokens that have this probability together',
      numberFrom(0, 1),
      1,
    )
    .option(
      '--max-tokens <n>',
      'at most this many tokens after the prompt, those of tools included',
      wholeFrom(1),
      256,
    )
    .option('--max-turns <n>', 'at most this many turns of the policy', wholeFrom(1), 8)
    .option('--max-parallel-calls <n>', 'at most this many tool calls in a turn', wholeFrom(1), 1)
    .option('--seed <n>', 'the same seed samples the same answer', wholeFrom(0), 0)
    .action((name: ReturnType<typeof parseCheckpointName>, options: GenerateOptions) =>
      withStoreOf(
        options,
        async (store) => {
          const settings = await settingsOf(options);
          const environment = await environmentOf(options.environment);
          const policies = new PolicyPool(
            store,
            () => createDecoder({ threads: settings.decoderThreads }),
            1,
          );
          try {
            const lease = await policies.lease(await checkpointOf(store, name));
            for await (const prompt of prompts(options.prompt)) {
              await playEpisode(lease, environment, prompt, options, (text) =>
                process.stdout.write(printable(text)),
              );
            }
            lease.release();
          } finally {
            await policies.close();
          }
        },
        { patient: true },
      ),
    );
}

/** One prompt, or every line of standard input. */
async function* prompts(given: string | undefined): AsyncGenerator<string> {
  if (given !== undefined) {
    yield given;
    return;
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') yield line;
    lines.prompt();
  }
}

/** Nobody's environment: a call of any tool is told that there is none. */
function withoutTools(): HostedEnvironment {
  const facts = {
    name: 'none',
    file: '',
    levels: [],
    tools: [],
    verifiers: [],
    relabels: false,
    proposals: null,
    varies: false,
  };
  return new HostedEnvironment(
    {
      ...facts,
      demonstrates: false,
      presents: false,
      resume: null,
      endSeconds: null,
      version: null,
      taskCounts: { train: {}, heldout: {}, test: {} },
    },
    {
      ask: () => Promise.reject(new Error('nobody can be asked here')),
    },
  );
}

/** Throws GradusError('environment', 'unknown') with the nearest name. */
async function environmentOf(name: string | undefined): Promise<HostedEnvironment> {
  if (name === undefined) return withoutTools();
  const environments = await loadProjectEnvironments(await projectModules());
  const found = environments.get(name);
  if (found) return hostedHere(found);
  const names = [...environments.keys()];
  throw new GradusError(
    'environment',
    'unknown',
    `no environment "${name}"${suggestion(name, names) || '.'} There are: ${names.join(', ')}. An environment of your own is known here when ` +
      'GRADUS_ENVIRONMENTS or package.json names its module, as for dev',
  );
}
