import { Command } from 'commander';
import { armName } from '../../core/names.ts';
import { rate } from '../../core/statistics/intervals.ts';
import type { Proportion } from '../../core/statistics/intervals.ts';
import { measuredShare } from '../../core/statistics/measured.ts';
import { askedOfAll, commonTasks, compareRuns } from '../../runs/comparison/compare.ts';
import type { CommonTasks, Comparison } from '../../runs/comparison/compare.ts';
import { divergenceOf } from '../../runs/comparison/divergence.ts';
import { divergenceText } from '../../runs/comparison/divergence-words.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { noteDamage, print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';
import { textTable } from '../../runs/text-table.ts';

/** Spec differences that a table has; `--json` has all. */
const MOST_ROWS = 40;
const CONFIDENCE = 0.95;

/** `gradus compare RUN RUN…`: what two runs or more differ in, what came of it, and where they part. */
export function compareCommand(): Command {
  return withConnectionFlags(new Command('compare'))
    .argument('<runs...>', 'two to four runs')
    .option('--episodes', 'compares every stored episode, not only those of steps whose facts differ')
    .option('--json', 'everything, as one JSON object')
    .action(
      (
        runs: string[],
        { episodes = false, json, ...options }: ConnectionOptions & { episodes?: boolean; json?: boolean },
      ) =>
        withStoreOf(options, async (store) => {
          const compared = await compareRuns(store, runs, 'step');
          const [at] = await askedOfAll(store, runs);
          const tasks = at ? await commonTasks(store, runs, at) : null;
          const [first, ...others] = runs as [string, ...string[]];
          const divergences = [];
          for (const other of others)
            divergences.push(await divergenceOf(store, [first, other], { episodes }));
          if (json === true) {
            const figures = Object.fromEntries(compared.figures);
            printJson('compare', { ...compared, figures, tasks, divergences });
            return;
          }
          // First what a person asks first: whether they part, and where.
          for (const divergence of divergences) for (const line of divergenceText(divergence)) print(line);
          printComparison(compared, tasks);
        }),
    );
}

function printComparison({ runs, spec, heldOut, unreadable }: Comparison, tasks: CommonTasks | null): void {
  noteDamage([...new Set([...unreadable, ...(tasks?.unreadable ?? [])])]);
  const names = runs.map(({ run }) => run);
  print(
    textTable(
      ['', ...names],
      [
        ['steps', ...runs.map(({ steps }) => String(steps))],
        ['sampled tokens', ...runs.map(({ tokens }) => String(tokens))],
        ['seconds of steps', ...runs.map(({ seconds }) => seconds.toFixed(1))],
        ...heldOut.map(({ arm, of }) => [
          `held-out, ${armName(arm)}`,
          ...of.map((one) => (one === null ? '–' : `${success(one)} after step ${one.step}`)),
        ]),
        ...(tasks === null || tasks.tasks.length === 0
          ? []
          : [
              [
                `${tasks.tasks.length} common tasks of ${tasks.at.stage}/${tasks.at.step}`,
                ...tasks.success.map(success),
              ],
            ]),
      ],
    ),
  );
  if (tasks?.tasks.length === 0) {
    print(`No task of ${tasks.at.stage}/${tasks.at.step} was given to all of them.`);
  } else if (tasks?.solved) {
    const { both, first, second, neither } = tasks.solved;
    print(
      `Of these tasks ${both} are solved by both, ${first} by ${names[0]} alone, ${second} by ${names[1]} alone, ${neither} by neither.`,
    );
  }
  if (spec === null) print('How their specs differ is not known.');
  else if (spec.length === 0) print('Their specs are the same.');
  else {
    print(
      textTable(
        ['spec', ...names],
        spec.slice(0, MOST_ROWS).map(({ path, values }) => [path, ...values.map((value) => value ?? '–')]),
      ),
    );
    if (spec.length > MOST_ROWS) print(`… and ${spec.length - MOST_ROWS} more differences: --json has all`);
  }
}

function success(of: Proportion & { samples?: number }): string {
  if (of.trials === 0) return '–';
  const { low, high } = measuredShare(of, CONFIDENCE, of.samples);
  const percent = (part: number): string => (100 * part).toFixed(1);
  return `${percent(rate(of))} % [${percent(low)}, ${percent(high)}] of ${of.trials}`;
}
