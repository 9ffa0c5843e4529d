import { Command, InvalidArgumentError } from 'commander';
import type { Fork } from '../../activities/replay/fork-episode.ts';
import { parsePlace } from '../../runs/episodes/place.ts';
import { settingsOf, withConnectionFlags } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { numberFrom, wholeFrom } from '../numbers.ts';
import { note, print } from '../printable.ts';
import { projectModules } from '../project.ts';
import { replayReport } from '../replay-report.ts';
import { printJson } from '../json/print-json.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

interface ReplayOptions extends ConnectionOptions {
  topK: number;
  fork?: Pick<Fork, 'at' | 'token'>;
  seed?: number;
  json?: boolean;
  timeLimit: number;
}

/** Draws of a fork without a token of its own, where none are named. */
const SEED = 1;
/** How often progress is said, milliseconds. */
const SAY_MS = 2000;

/** `gradus replay PLACE`: an episode token by token from its checkpoint, or another one from one of its tokens. */
export function replayCommand(): Command {
  return withConnectionFlags(new Command('replay'))
    .argument('<place>', 'RUN/STAGE/STEP/GROUP/EPISODE, as pages and other commands print it')
    .option('--top-k <k>', 'show this many of the likeliest tokens beside each, at most 64', mostOf(64), 5)
    .option(
      '--fork <position[=id]>',
      'go on from this token of the episode, with the token ID in its place, or with other draws',
      parseFork,
    )
    .option(
      '--seed <n>',
      `draws of the fork (default: those of the episode, or ${SEED} without an id)`,
      wholeFrom(0),
    )
    .option('--json', 'one JSON object, with every token')
    .option('--time-limit <seconds>', 'stop after this many seconds', numberFrom(1, 1e6), 3600)
    .action(async (text: string, { topK, fork, seed, json, timeLimit, ...options }: ReplayOptions) => {
      const place = parsePlace(text);
      const settings = { ...(await settingsOf(options)), environmentModules: (await projectModules()).files };
      const request = {
        place,
        alternatives: topK,
        fork: fork ? { ...fork, seed: seed ?? (fork.token === null ? SEED : null) } : null,
      };
      // The engine is loaded when it is needed.
      const { runReplay } = await import('../run-replay.ts');
      const answer = await runReplay(settings, request, {
        signal: timeoutSignal(timeLimit * 1000),
        onProgress: sayNow(),
      });
      if (json === true) printJson('replay', answer);
      else print(replayReport(answer));
      // For scripts, as diff says it.
      if (answer.replay?.equal === false) process.exitCode = 1;
    });
}

/** Said while a person waits, and not before it takes long. */
function sayNow(): (tokens: number, total: number | null) => void {
  let reported = Date.now();
  return (tokens, total) => {
    if (Date.now() - reported < SAY_MS) return;
    reported = Date.now();
    note(`${tokens}${total === null ? '' : ` of ${total}`} tokens`);
  };
}

function mostOf(most: number): (text: string) => number {
  return (text) => {
    const value = wholeFrom(0)(text);
    if (value <= most) return value;
    throw new InvalidArgumentError(`give ${most} at most`);
  };
}

/** `17`, or `17=42`. */
export function parseFork(text: string): Pick<Fork, 'at' | 'token'> {
  const parts = /^(\d{1,9})(?:=(\d{1,9}))?$/.exec(text);
  if (!parts) throw new InvalidArgumentError('give the position of a token, or POSITION=ID');
  return { at: Number(parts[1]), token: parts[2] === undefined ? null : Number(parts[2]) };
}
