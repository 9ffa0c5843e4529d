import type { GroupResult } from '../core/requests/verification.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import { benchRowsOf } from './bench.ts';
import type { Bench } from './bench.ts';
import { historiesFrom, payloadsIn, resultOf } from '../test/support/histories.ts';
import type { WorkflowHistory } from '../test/support/histories.ts';
import { durableRun, withInstallation } from './installations.ts';
import { cutCalculator, sizeOf } from './specs.ts';

/** A payload above this belongs into the object store. */
const PAYLOAD_LIMIT = 64 * 1024;

const nothing = () => ({ workflows: 0, episodes: 0, events: 0, bytes: 0 });
type Sum = ReturnType<typeof nothing>;

/**
 * What a run leaves in Temporal, per episode: events, and bytes as the server counts them (`historySizeBytes`), over
 * the histories of all its workflows; and the largest payload.
 */
export const historyBench: Bench = async function* (options) {
  const spec = options.quick ? tinySpec() : cutCalculator({ updates: 60, steps: 4, reports: 300 });
  /** `groups`: of RL steps alone. */
  const weigh = () =>
    withInstallation(options, async (client) => {
      const { handle } = await durableRun(client, spec, options);
      const stages = spec.stages.map((stage) => `${handle.workflowId}/${stage.name}/`);
      const weighed = { all: nothing(), groups: nothing(), largest: { bytes: 0, where: '' } };
      const root = { workflowId: handle.workflowId, runId: handle.firstExecutionRunId };
      for await (const workflow of historiesFrom(client, root)) {
        options.signal.throwIfAborted();
        const { type, workflowId, history } = workflow;
        add(weighed.all, workflow);
        // What follows the episodes that wait for long calls belongs to the group.
        const isGroup = ['rolloutGroup', 'followEpisodes'].includes(type);
        if (isGroup && stages.some((stage) => workflowId.startsWith(stage))) add(weighed.groups, workflow);
        for (const event of history.events ?? []) {
          const where = `${type}, event ${event.eventId?.toString()} of ${workflowId}`;
          for (const { data } of payloadsIn(event))
            if ((data?.length ?? 0) > weighed.largest.bytes) weighed.largest = { bytes: data!.length, where };
        }
      }
      const { all, largest } = weighed;
      options.say(
        `${all.workflows} workflows, ${all.episodes} episodes, ${all.events} events, ${all.bytes} bytes; largest payload in ${largest.where}`,
      );
      return weighed;
    });
  const weighed: Awaited<ReturnType<typeof weigh>>[] = [];
  for (let run = 0; run < (options.runs ?? 1); run++) weighed.push(await weigh());
  const row = benchRowsOf('history');
  const size = sizeOf(spec);
  for (const [name, part] of [
    [`all workflows of a run with ${size}`, 'all'],
    [`the RL rollout groups of ${spec.stages[1].numGenerations} episodes alone`, 'groups'],
  ] as const) {
    const perEpisode = (what: keyof Sum): number[] =>
      weighed.map(({ [part]: sum }) => sum[what] / sum.episodes);
    yield row(name, 'events/episode', 'less', perEpisode('events'));
    yield row(name, 'bytes/episode', 'less', perEpisode('bytes'));
  }
  const largest = weighed.map((one) => one.largest.bytes);
  yield row(`largest payload of a run with ${size}, vs its limit`, 'bytes', 'less', largest, PAYLOAD_LIMIT);
};

function add(sum: Sum, { type, history, bytes }: WorkflowHistory): void {
  sum.workflows++;
  sum.events += history.events?.length ?? 0;
  sum.bytes += bytes;
  if (type !== 'rolloutGroup') return;
  const result = resultOf(history) as GroupResult | undefined;
  if (result) sum.episodes += Object.values(result.outcomes).reduce((a, b) => a + b, 0);
}
