import type { EpisodeStatus, Turn } from '../../../core/episode/episode.ts';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { TaskRef } from '../../../core/refs.ts';
import { isDeath } from '../../../environments/host/asks.ts';
import type { Called } from '../../../environments/host/asks.ts';
import type { EpisodeEnd } from '../../../environments/contract/session.ts';
import { toolAttempts } from '../../../environments/host/facts.ts';
import type { ToolFacts } from '../../../environments/host/facts.ts';
import type { HostCaller, HostedEnvironment } from '../../../environments/host/hosted-environment.ts';
import { inAttempts } from '../../../environments/host/in-attempts.ts';
import type { EpisodeTools, MadeCall, OfferedTools } from '../../../gateway/episode-tools.ts';
import type { FollowedEpisode } from '../trajectory-parts.ts';
import { sessionOf } from '../advance-episode.ts';

/** The tools of a task, as its agent may call them. */
export interface AgentTools {
  environment: HostedEnvironment;
  ref: TaskRef;
  tools: readonly ToolFacts[];
  /** The name of the episode, by which its session and its calls are known. */
  episodeId: string;
  mostCalls: number;
  incident: HostCaller['incident'];
  putImages: (called: Called) => Promise<Called>;
}

/** Pause before a call is tried again, milliseconds, doubled each time. */
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 15_000;

export function offeredTools(context: AgentTools): OfferedTools {
  const { environment, tools, episodeId, mostCalls, incident } = context;
  const toolOf = (name: string): ToolFacts | undefined => tools.find((one) => one.name === name);
  return {
    described: tools.map(({ described }) => described),
    episode: episodeId,
    inSession: environment.resume !== null,
    mostCalls,
    isOnce: (name) => toolOf(name)?.effect === 'once',
    async make(call, { key, before }, signal) {
      const tool = toolOf(call.name);
      const session = sessionOf(context, asTurns(before));
      try {
        const called = await inAttempts(
          (attempt) =>
            environment.call(call, { signal, incident, idempotencyKey: key, attempt, session }, tools),
          {
            attempts: tool ? toolAttempts(tool) : 1,
            firstPauseMs: PAUSE_MS,
            longestPauseMs: LONGEST_PAUSE_MS,
            signal,
          },
        );
        return async () => {
          const { observation, session: kept } = await context.putImages(called);
          return { observation, ...(kept && { session: kept }) };
        };
      } catch (error) {
        signal.throwIfAborted();
        if (!isDeath(error)) incident?.(environment.threw(`tool ${call.name}`, messageOf(error)));
        throw error;
      }
    },
  };
}

/** The calls as an episode has those of its own turns: each is a turn of one call. */
function asTurns(calls: readonly MadeCall[]): {
  turns: Pick<Turn, 'action' | 'observation'>[];
} & Pick<MadeCall, 'session'> {
  const session = calls.findLast((one) => one.session)?.session;
  return {
    turns: calls.map(({ call, observation }) => ({ action: { kind: 'call', call }, observation })),
    ...(session && { session }),
  };
}

/**
 * An episode with the calls that its agent made, and the last word of their session, which is let go of. One whose call broke
 * has failed, and one that ended in the middle of a call that may have changed something: no verifier would know of it.
 */
export async function withCalls(
  context: AgentTools,
  tools: Pick<EpisodeTools, 'calls' | 'broken' | 'unfinished' | 'notRepeated'>,
  { task, episode }: FollowedEpisode,
  signal: AbortSignal,
): Promise<FollowedEpisode> {
  const { environment, incident } = context;
  const { calls, broken } = tools;
  const failed = broken ?? (episode.status.kind === 'failed' ? undefined : gapIn(context, tools));
  const made = {
    ...episode,
    ...(failed && { status: { kind: 'failed' as const, ...failed } }),
    ...(calls.length > 0 && { calls: calls.map(({ call, observation }) => ({ call, observation })) }),
  };
  if (environment.resume === null) return { task, episode: made };
  const session = sessionOf(context, asTurns(calls));
  if (made.status.kind === 'failed') {
    await environment.close([session], { signal, incident });
    return { task, episode: made };
  }
  const ended = calls.some(({ observation }) => observation.done === true);
  try {
    const last = await environment.end(session, endOf(made.status, ended), { signal, incident });
    const { state } = session.kept ?? {};
    return { task, episode: { ...made, session: { ...(state !== undefined && { state }), ended: last } } };
  } catch (error) {
    signal.throwIfAborted();
    const boundary = error instanceof GradusError && error.boundary === 'infra' ? 'infra' : 'environment';
    const status = { kind: 'failed' as const, boundary, reason: messageOf(error) } as const;
    return { task, episode: { ...made, status } };
  }
}

/** Why nobody can say what an agent did that has ended by itself; undefined where its calls say it. */
function gapIn(
  { tools }: Pick<AgentTools, 'tools'>,
  { unfinished, notRepeated: [other] }: Pick<EpisodeTools, 'unfinished' | 'notRepeated'>,
): EpisodeTools['broken'] {
  const failed = (reason: string) => ({ boundary: 'environment' as const, reason });
  if (other)
    return failed(
      `started over, it did not call ${other.name} as before, and a session cannot take a call back: let it call the same in the same order`,
    );
  const effective = tools.filter(({ effect }) => effect !== 'pure').map(({ name }) => name);
  const cut = unfinished.find(({ name }) => effective.includes(name));
  if (!cut) return undefined;
  return failed(
    `The agent ended before its call of ${cut.name} did, and what that has done nobody can say: let it wait for its calls`,
  );
}

function endOf(status: EpisodeStatus, ended: boolean): EpisodeEnd {
  const answer = status.kind === 'answered' ? status.answer : null;
  if (ended) return { answer, by: 'environment' };
  return { answer, by: status.kind === 'truncated' ? status.limit : 'answer' };
}
