import { Command } from 'commander';
import { parsePlace } from '../../runs/episodes/place.ts';
import { lossInWords, secondsInWords } from '../../runs/timeline/timeline-lanes.ts';
import { readTimeline } from '../../runs/timeline/timeline.ts';
import type { Timeline } from '../../runs/timeline/timeline.ts';
import { withConnectionFlags, withSources } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';
import { textTable } from '../../runs/text-table.ts';

/** `gradus timeline RUN/STAGE/STEP/GROUP/EPISODE`: attempts at what an episode is made of, and what was lost. */
export function timelineCommand(): Command {
  return withConnectionFlags(new Command('timeline'))
    .argument('<place>', 'RUN/STAGE/STEP/GROUP/EPISODE; an evaluation has its name for a stage')
    .option('--group', 'show all episodes of the group')
    .option('--json', 'everything, as one JSON object')
    .action((text: string, options: ConnectionOptions & { group?: boolean; json?: boolean }) =>
      withSources(options, async (sources) => {
        const place = parsePlace(text);
        const read = await readTimeline(sources, place, options.group === true ? null : place.episode);
        if (options.json === true) printJson('timeline', read);
        else print(inWords(read));
      }),
    );
}

function inWords({ activities, from, to, asOf, lost, leftOut, workflowId }: Timeline): string {
  const rows: (string | number)[][] = [];
  for (const activity of activities) {
    const { name, tool, attempts, worker, scheduled, started, ended, state, fault } = activity;
    rows.push([
      secondsInWords((scheduled - from) / 1000),
      tool === null ? name : `${name}: ${tool}`,
      attempts,
      worker ?? '–',
      secondsInWords(((started ?? ended ?? asOf) - scheduled) / 1000),
      started === null ? '–' : secondsInWords(((ended ?? asOf) - started) / 1000),
      fault === null ? state : `${state}: ${fault.message}`,
    ]);
  }
  const { attempts, atLeast, atMost } = lost;
  const cost =
    attempts === 0
      ? 'No attempt was lost.'
      : `${attempts} attempt${attempts === 1 ? '' : 's'} lost, which cost ${
          atLeast === null || atLeast === 0 ? '' : `at least ${secondsInWords(atLeast)} and `
        }at most ${secondsInWords(atMost)}:`;
  return [
    textTable(['at', 'activity', 'attempt', 'worker', 'waited', 'took', 'became'], rows),
    `${workflowId}: ${secondsInWords(((to ?? asOf) - from) / 1000)}${to === null ? ' so far' : ''}. ${cost}`,
    ...activities.flatMap((activity) => {
      const words = lossInWords(activity);
      return words === null ? [] : [`  ${activity.name}: ${words}`];
    }),
    ...leftOut.map((what) => `Left out: ${what}`),
  ].join('\n');
}
