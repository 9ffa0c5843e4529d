import { Command } from 'commander';
import type { BeforeAfter, ReweighedEpisode, ReweighedTask } from '../../core/algorithms/reweigh.ts';
import { decimals } from '../../core/decimals.ts';
import { armName } from '../../core/names.ts';
import {
  episodePlace,
  parseStepPlace,
  reproductionText,
  summaryOf,
} from '../../runs/reweigh/reweigh-words.ts';
import { reweighStep } from '../../runs/reweigh/reweigh.ts';
import type { ReweighedStep } from '../../runs/reweigh/reweigh.ts';
import { readSetting } from '../../spec/reward-changes.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { loadExtensions } from '../../workers/load-extensions.ts';
import { print } from '../printable.ts';
import { projectExtensions } from '../project.ts';
import { printJson } from '../json/print-json.ts';
import { textTable } from '../../runs/text-table.ts';

interface ReweighOptions extends ConnectionOptions {
  set?: string[];
  json?: boolean;
}

/** Rows of a table at most; `--json` has all. */
const MOST_ROWS = 40;

/** `gradus reweigh RUN/STAGE/STEP`: what a step would have trained under another reward. */
export function reweighCommand(): Command {
  return withConnectionFlags(new Command('reweigh'))
    .argument('<step>', 'RUN/STAGE/STEP')
    .option(
      '--set <field=value>',
      'a field of the reward, such as format.weight=0.5, format.gatedBy=none, truncated=mask; may be given several times. Without it the fields are listed',
      (one: string, all: string[] | undefined) => [...(all ?? []), one],
    )
    .option('--json', 'everything, as one JSON object')
    .action((place: string, { set = [], json, ...options }: ReweighOptions) =>
      withStoreOf(options, async (store) => {
        await loadExtensions((await projectExtensions()).files);
        const done = await reweighStep(store, parseStepPlace(place), new Map(set.map(readSetting)));
        if (json === true) {
          printJson('reweigh', done);
          return;
        }
        if (set.length === 0) printFields(done);
        else printDone(done);
      }),
    );
}

const tableOf = (head: string[], rows: readonly string[][]): string => {
  const more = rows.length - MOST_ROWS;
  return `${textTable(head, rows.slice(0, MOST_ROWS))}${more > 0 ? `\n… and ${more} more: --json has all` : ''}`;
};

function printFields(step: ReweighedStep): void {
  print(reproductionText(step));
  print(
    tableOf(
      ['--set', 'is', 'may be'],
      step.fields.map(({ name, value, choices }) => [name, value, choices?.join(', ') ?? 'a number']),
    ),
  );
}

function printDone(step: ReweighedStep): void {
  for (const { field, from, to } of step.changes) print(`${field}: ${from} → ${to}`);
  print(reproductionText(step));
  for (const line of [...summaryOf(step), ...step.limits]) print(line);
  const touched = step.tasks.filter(({ episodes }) => episodes.some(isOther));
  if (touched.length > 0) print(tableOf(['task', 'σ', 'trained', 'rewards', 'flipped'], touched.map(rowOf)));
  const flipped = step.tasks.flatMap(({ episodes }) => episodes.filter((one) => one.flipped > 0));
  if (flipped.length > 0)
    print(
      tableOf(
        ['episode whose advantage has the other sign', 'reward', 'advantage', 'tokens'],
        flipped.map((one) => [
          episodePlace(step, one) ?? one.group,
          change(one.reward),
          change(one.advantage),
          `${one.flipped} of ${one.tokens}`,
        ]),
      ),
    );
}

const isOther = ({ reward, advantage }: ReweighedEpisode): boolean =>
  reward.before !== reward.after || advantage.before !== advantage.after;

const rowOf = ({ ref, deviation, teaches, episodes }: ReweighedTask): string[] => [
  `${armName(ref)} #${ref.index}`,
  change(deviation),
  teaches.before === teaches.after ? yes(teaches.after) : `${yes(teaches.before)} → ${yes(teaches.after)}`,
  String(episodes.filter(({ reward }) => reward.before !== reward.after).length),
  String(episodes.filter(({ flipped }) => flipped > 0).length),
];

const yes = (is: boolean): string => (is ? 'yes' : 'no');
const shown = (value: number | null): string => (value === null ? '–' : decimals(value, 3));
const change = ({ before, after }: BeforeAfter<number | null>): string =>
  before === after ? shown(before) : `${shown(before)} → ${shown(after)}`;
