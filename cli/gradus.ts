#!/usr/bin/env node
import { Command } from 'commander';
import { exit, exitWithReader } from './exit.ts';
import { fail } from './fail.ts';
import { ownManifest } from './own-manifest.ts';

// Everything that is done to runs and models from a terminal, beside what the Temporal CLI does. One file a command,
// of which only the one that is asked for is loaded: the model's engine alone takes seconds.

const COMMANDS: Record<string, { description: string; load: () => Promise<() => Command> }> = {
  init: {
    description: 'Writes an example environment, its spec and a test into this folder, or a recipe.',
    load: async () => (await import('./commands/init.ts')).initCommand,
  },
  recipes: {
    description: 'Lists published systems that can be run, and what each of them claims.',
    load: async () => (await import('./commands/recipes.ts')).recipesCommand,
  },
  check: {
    description: 'Checks that environments do what training relies on, and plays episodes of their experts.',
    load: async () => (await import('./commands/check.ts')).checkEnvironmentCommand,
  },
  environments: {
    description: 'Lists the built-in environments and those of the project, and what each needs.',
    load: async () => (await import('./commands/environments.ts')).environmentsCommand,
  },
  train: {
    description: 'Runs a spec, shows its progress, and ends with the table of before and after.',
    load: async () => (await import('./commands/train.ts')).trainCommand,
  },
  dev: {
    description: 'Runs servers and workers until Ctrl-C.',
    load: async () => (await import('./commands/dev.ts')).devCommand,
  },
  dashboard: {
    description: 'Serves the dashboard for any Temporal and bucket.',
    load: async () => (await import('./commands/dashboard.ts')).dashboardCommand,
  },
  setup: {
    description:
      'Installs what the package alone does not have: servers, libtensorflow, Python environments.',
    load: async () => (await import('./commands/setup.ts')).setupCommand,
  },
  start: {
    description: 'Starts a run on workers that are already running.',
    load: async () => (await import('./commands/start.ts')).startCommand,
  },
  runs: {
    description: 'Lists runs, those that wait for a person first.',
    load: async () => (await import('./commands/runs.ts')).runsCommand,
  },
  why: {
    description: 'Shows what a run waits for: a person, a verdict, a missing worker, a retry.',
    load: async () => (await import('./commands/why.ts')).whyCommand,
  },
  decide: {
    description: 'Shows the question that a run has for a person, or answers it.',
    load: async () => (await import('./commands/steer.ts')).decideCommand,
  },
  pause: {
    description: 'Pauses a run after the step in flight.',
    load: async () => (await import('./commands/steer.ts')).signal('pause'),
  },
  resume: {
    description: 'Resumes a paused run.',
    load: async () => (await import('./commands/steer.ts')).signal('resume'),
  },
  stop: {
    description: 'Stops a run after the step in flight, after a confirmation.',
    load: async () => (await import('./commands/steer.ts')).signal('stop'),
  },
  set: {
    description: 'Changes budgets and limits of a running run.',
    load: async () => (await import('./commands/set.ts')).setCommand,
  },
  delete: {
    description: 'Deletes all that Temporal and the store have of a run, after a confirmation.',
    load: async () => (await import('./commands/delete.ts')).deleteCommand,
  },
  checkpoints: {
    description: 'Lists the checkpoints of a run, oldest first.',
    load: async () => (await import('./commands/checkpoints.ts')).checkpointsCommand,
  },
  metrics: {
    description: 'Shows the facts and figures of every step of a run, and exports them.',
    load: async () => (await import('./commands/metrics.ts')).metricsCommand,
  },
  find: {
    description: 'Finds episodes of a run by outcome, reward and other facts, and exports them.',
    load: async () => (await import('./commands/find.ts')).findCommand,
  },
  episode: {
    description: 'Shows one episode: turns, calls, observations and rewards.',
    load: async () => (await import('./commands/episode.ts')).episodeCommand,
  },
  timeline: {
    description: 'Shows the attempts of an episode: what a fault cost, and what was not repeated.',
    load: async () => (await import('./commands/timeline.ts')).timelineCommand,
  },
  operations: {
    description:
      'Shows activities under way in all runs, the workers of each queue, and what the store holds.',
    load: async () => (await import('./commands/operations.ts')).operationsCommand,
  },
  recompute: {
    description:
      'Makes a run again from what its steps took, also an asynchronous one, and says where the two part.',
    load: async () => (await import('./commands/recompute.ts')).recomputeCommand,
  },
  compare: {
    description: 'Compares two to four runs: their specs, their results, and where they part.',
    load: async () => (await import('./commands/compare.ts')).compareCommand,
  },
  reweigh: {
    description: 'Computes what a step would have trained under another reward.',
    load: async () => (await import('./commands/reweigh.ts')).reweighCommand,
  },
  ledger: {
    description: 'Shows what the verification ladder of a run decided and spent.',
    load: async () => (await import('./commands/ledger.ts')).ledgerCommand,
  },
  review: {
    description: 'Reviews, in which people give verdicts.',
    load: async () => (await import('./commands/review.ts')).reviewCommand,
  },
  evaluate: {
    description: 'Measures a checkpoint or a Hugging Face folder on tasks of environments, without a run.',
    load: async () => (await import('./commands/evaluate.ts')).evaluateCommand,
  },
  generate: {
    description: 'Samples answers of a checkpoint; every line is a task of its own, as in training.',
    load: async () => (await import('./commands/generate.ts')).generateCommand,
  },
  replay: {
    description: 'Samples a stored episode again, token by token, or forks it at one of its tokens.',
    load: async () => (await import('./commands/replay.ts')).replayCommand,
  },
  reverify: {
    description: 'Judges stored episodes of a run by another verifier, without rolling them out again.',
    load: async () => (await import('./commands/reverify.ts')).reverifyCommand,
  },
  harbor: {
    description: 'Writes tasks of the environment swe as task folders of Harbor.',
    load: async () => (await import('./commands/harbor.ts')).harborCommand,
  },
  import: {
    description: 'Imports a Hugging Face folder; a spec begins with it by {"model": {"from": "NAME"}}.',
    load: async () => (await import('./commands/import.ts')).importCommand,
  },
  export: {
    description: 'Writes a checkpoint as a Hugging Face folder, with a model card of how it was trained.',
    load: async () => (await import('./commands/export.ts')).exportCommand,
  },
};

/** What such commands are called elsewhere, where the nearest name of ours is another thing. */
const CALLED_ELSEWHERE: Record<string, string> = {
  status: 'runs',
  list: 'runs',
  ls: 'runs',
  ps: 'runs',
  show: 'why RUN',
  describe: 'why RUN',
  logs: 'why RUN',
  steps: 'metrics RUN',
  cancel: 'stop RUN',
  kill: 'stop RUN',
};

const program = new Command('gradus')
  .description('Trains agents that use tools, inspects and steers runs, imports and exports models.')
  .version(ownManifest().version, '-V, --version', 'shows the version')
  // `reverify RUN --version 1` is the verifier's.
  .enablePositionalOptions()
  .showHelpAfterError('(--help lists commands and options)');
for (const [name, { description, load }] of Object.entries(COMMANDS)) {
  const command = process.argv.includes(name) ? (await load())() : new Command(name);
  inherit(command, program);
  program.addCommand(command.description(description));
}

/** How mistakes are answered, which commander hands on to commands that it makes itself only. */
function inherit(command: Command, from: Command): void {
  command.copyInheritedSettings(from);
  for (const part of command.commands) inherit(part, command);
}

// `source <(gradus complete bash)`, or zsh, fish, powershell: only then is it worth loading.
if (process.argv[2] === 'complete') (await import('@bomb.sh/tab/commander')).default(program);

const [, , asked = ''] = process.argv;
if (Object.hasOwn(CALLED_ELSEWHERE, asked))
  program.error(`error: unknown command '${asked}'\n(Did you mean ${CALLED_ELSEWHERE[asked]}?)`);

exitWithReader();
program.parseAsync().then(() => exit(), fail);
