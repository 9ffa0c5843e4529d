import type { GroupResult } from '../core/requests.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';
import { cutCalculator, sizeOf } from './bench-specs.ts';
import { durableRun, withInstallation } from './durable-run.ts';
import { historiesFrom, payloadsIn, resultOf } from './histories.ts';
import type { WorkflowHistory } from './histories.ts';

/** A payload above this belongs into the object store. */
const PAYLOAD_LIMIT = 64 * 1024;

interface Sum {
  workflows: number;
  episodes: number;
  events: number;
  bytes: number;
}

const nothing = (): Sum => ({ workflows: 0, episodes: 0, events: 0, bytes: 0 });

interface Weighed {
  all: Sum;
  /** The groups of RL steps alone. */
  groups: Sum;
  largest: { bytes: number; where: string };
}

/**
 * What a run leaves in Temporal, per episode: events, and bytes as the server counts them (`historySizeBytes`), over
 * the histories of all its workflows; and the largest payload.
 */
export async function* historyBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const spec = options.quick ? tinySpec() : cutCalculator({ updates: 60, steps: 4, reports: 300 });
  const runs = options.runs ?? 1;
  const weighed: Weighed[] = [];
  for (let run = 1; run <= runs; run++) {
    weighed.push(await weigh(spec, options));
    const { all, largest } = weighed.at(-1)!;
    options.say(
      `run ${run} of ${runs}: ${all.workflows} workflows, ${all.episodes} episodes, ${all.events} events, ` +
        `${all.bytes} bytes; largest payload in ${largest.where}`,
    );
  }
  const row = (name: string, unit: string, of: (weighed: Weighed) => number, anchor: number | null = null) =>
    benchRow({ bench: 'history', case: name, unit, better: 'less', ours: weighed.map(of), anchor });
  const size = sizeOf(spec);
  for (const [name, sum] of [
    [`all workflows of a run with ${size}`, 'all'],
    [`the RL rollout groups of ${spec.stages[1].numGenerations} episodes alone`, 'groups'],
  ] as const) {
    yield row(name, 'events/episode', (weighed) => weighed[sum].events / weighed[sum].episodes);
    yield row(name, 'bytes/episode', (weighed) => weighed[sum].bytes / weighed[sum].episodes);
  }
  yield row(
    `largest payload of a run with ${size}, vs its limit`,
    'bytes',
    ({ largest }) => largest.bytes,
    PAYLOAD_LIMIT,
  );
}

function weigh(spec: ReturnType<typeof tinySpec> | ReturnType<typeof cutCalculator>, options: BenchOptions) {
  return withInstallation(options, async (client): Promise<Weighed> => {
    const { handle } = await durableRun(client, spec, options);
    const stages = spec.stages.map((stage) => `${handle.workflowId}/${stage.name}/`);
    const weighed: Weighed = { all: nothing(), groups: nothing(), largest: { bytes: 0, where: '' } };
    const root = { workflowId: handle.workflowId, runId: handle.firstExecutionRunId };
    for await (const workflow of historiesFrom(client, root)) {
      options.signal.throwIfAborted();
      add(weighed.all, workflow);
      const ofStep = stages.some((stage) => workflow.workflowId.startsWith(stage));
      // What follows the episodes that wait for long calls belongs to the group.
      if (ofStep && ['rolloutGroup', 'followEpisodes'].includes(workflow.type)) add(weighed.groups, workflow);
      for (const event of workflow.history.events ?? []) {
        for (const { data } of payloadsIn(event)) {
          const bytes = data?.length ?? 0;
          if (bytes > weighed.largest.bytes) {
            weighed.largest = {
              bytes,
              where: `${workflow.type}, event ${event.eventId?.toString()} of ${workflow.workflowId}`,
            };
          }
        }
      }
    }
    return weighed;
  });
}

function add(sum: Sum, { type, history, bytes }: WorkflowHistory): void {
  sum.workflows++;
  sum.events += history.events?.length ?? 0;
  sum.bytes += bytes;
  if (type !== 'rolloutGroup') return;
  const result = resultOf(history) as GroupResult | undefined;
  if (result) sum.episodes += Object.values(result.outcomes).reduce((a, b) => a + b, 0);
}
