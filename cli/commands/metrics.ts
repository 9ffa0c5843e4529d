import { Command } from 'commander';
import { commandLine } from '../../core/installation.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { stepsOf } from '../../runs/overview/steps.ts';
import { figuresOf } from '../../core/training/figures.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { note, noteDamage, print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';

interface MetricsOptions extends ConnectionOptions {
  json?: boolean;
  tensorboard?: string;
  parquet?: string;
}

/** `gradus metrics RUN`: what every step of a run has left behind. */
export function metricsCommand(): Command {
  return withConnectionFlags(new Command('metrics'))
    .argument('<run>')
    .option('--json', 'the facts and the figures of each step, one JSON object a line')
    .option('--tensorboard <dir>', 'writes the figures as TensorBoard scalars to DIR/RUN/STAGE')
    .option('--parquet <file>', 'writes a Parquet file with a row for every stored episode')
    .action((run: string, options: MetricsOptions) =>
      withStoreOf(options, async (store) => {
        const damaged: string[] = [];
        const spec = await specOfRun(store, run, { damaged });
        const { steps, unreadable } = await stepsOf(store, run);
        damaged.push(...unreadable.map(({ message }) => message));
        noteDamage(damaged);
        if (options.json === true) {
          for (const step of steps) printJson('metrics', { ...step, figures: figuresOf(step) });
        }
        if (options.tensorboard !== undefined) {
          const { writeTensorBoard } = await import('../metrics/tensorboard.ts');
          const files = await writeTensorBoard(options.tensorboard, run, steps);
          note(`${steps.length} steps in ${files.length} files below ${options.tensorboard}`);
        }
        if (options.parquet !== undefined) {
          const { componentsOf, episodesOf, NO_REWARD } = await import('../../runs/episodes/episode-rows.ts');
          const { writeParquet } = await import('../../runs/exports/parquet.ts');
          const reward = spec?.reward ?? NO_REWARD;
          const damaged: string[] = [];
          const rows = await writeParquet(
            options.parquet,
            componentsOf(reward),
            episodesOf(store, run, reward, { damaged }),
          );
          noteDamage(damaged);
          note(`${rows} episodes in ${options.parquet}`);
        }
        if (options.json === true || options.tensorboard !== undefined || options.parquet !== undefined)
          return;
        const { metricsTable } = await import('../metrics/table.ts');
        print(
          steps.length === 0
            ? `${run} has no facts of steps in this store; "${commandLine(`why ${run}`)}" says what it is at`
            : metricsTable(steps),
        );
      }),
    );
}
