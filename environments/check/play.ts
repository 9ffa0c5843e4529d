import { GradusError } from '../../core/errors.ts';
import type { Observation, Turn } from '../../core/episode/episode.ts';
import type { TaskRef } from '../../core/refs.ts';
import { errorText } from '../host/facts.ts';
import type { HostedEnvironment } from '../host/hosted-environment.ts';
import { InTurn } from './in-turn.ts';
import type { OnceCalls } from './once-calls.ts';
import { answerOf, playThrough } from './play-through.ts';
import type { Begin, Effects, PlayedEpisode, Playing } from './play-through.ts';

/** What the expert did and read, and what verifiers said of it. */
export interface Played extends Effects {
  /** Negative for an example of what not to do. */
  weight: number;
  turns: { wrote: string; read: string | null; refused: Observation['error'] | null }[];
  answer: string | null;
  /** Of fast verifiers, in [0, 1]; null for an abstention. */
  scores: { verifier: string; score: number | null; why: string }[];
}

/** An episode of the expert as it went alone, to be played again. */
export interface Demonstrated {
  playing: Omit<Playing, 'id' | 'letGo' | 'first'>;
  episode: PlayedEpisode;
}

/** Ways of coming back in which a session that was let go of must go on as if it had not been. */
const COME_BACK: readonly (string | null)[] = ['fold', 'replay', 'snapshot'];

/**
 * Plays one of the expert's ways through a task, with the real tools and sessions, and has the fast verifiers judge it. A
 * session that can come back is played a second time, in which it is let go of before every call.
 * Throws GradusError('environment' | 'tool' | 'verifier', …).
 */
export async function playDemonstration(
  environment: HostedEnvironment,
  ref: TaskRef,
  way: number,
  begin: Begin,
  once: OnceCalls,
): Promise<{ played: Played; demonstrated: Demonstrated }> {
  const { signal } = new AbortController();
  const where = `train, level ${ref.level}, index ${ref.index}, way ${way}`;
  await begin({ what: `demonstrate() (${where})` });
  const [shown] = await environment.demonstrations([{ ref, index: way }], { signal });
  if (shown instanceof GradusError) throw shown;
  const { demonstration, tools = environment.tools } = shown!;
  const id = `check/${process.pid}/${ref.environment}/${ref.level}/${ref.index}/${way}`;
  const play = { environment, ref, tools, turns: demonstration.turns, signal, where, begin, once };
  const episode = await playThrough({ ...play, id, letGo: false, first: true });
  const calls = episode.turns.some(makesCalls);
  if (COME_BACK.includes(environment.resume) && calls && !episode.performed) {
    const again = await playThrough({ ...play, id: `${id}/again`, letGo: true, first: false });
    const other = otherwise(episode, again);
    if (other !== null) {
      throw disagrees(`its session was closed and came back as another one: ${other}`);
    }
  }
  const fast = environment.verifiers.filter(({ tier }) => tier === 'fast').map(({ name }) => name);
  await begin({ what: `its verifiers (${where})` });
  const { performed, unjudged, untold } = episode;
  const [said] = unjudged ? [[]] : await environment.verdicts(fast, [{ ref, episode }], { signal });
  if (said instanceof GradusError) throw said;
  const played: Played = {
    weight: demonstration.weight,
    performed,
    unjudged,
    untold,
    turns: episode.turns.map(({ text, observation }) => ({
      wrote: text,
      read: observation?.text ?? null,
      refused: observation?.error ?? null,
    })),
    answer: answerOf(episode),
    scores: said!.map(({ verifier, score, fault, evidence }) => ({
      verifier,
      score,
      why: fault ?? evidence ?? '',
    })),
  };
  return { played, demonstrated: { playing: play, episode } };
}

/**
 * Plays two episodes call by call in turn, each of which has been played alone: what one does must be nothing to the other.
 * Throws GradusError('environment', 'session') where it is.
 */
export async function playTogether(
  environment: HostedEnvironment,
  alone: readonly Demonstrated[],
  begin: Begin,
): Promise<void> {
  // What a server of its own does need not be the same twice.
  if (environment.resume === 'pin' || environment.resume === 'reattach') return;
  const [one, ...others] = alone.filter(
    ({ episode: { turns, performed } }) => !performed && turns.some(makesCalls),
  );
  if (one === undefined) return;
  const other = others.find(({ playing }) => playing.ref.index !== one.playing.ref.index) ?? one;
  const pair = [one, other];
  const turns = new InTurn(pair.length);
  const played = await Promise.allSettled(
    pair.map(async ({ playing }, n) => {
      const id = `check/${process.pid}/${playing.ref.environment}/${playing.ref.level}/together/${n}`;
      try {
        return await playThrough({
          ...playing,
          begin,
          id,
          letGo: false,
          first: false,
          myTurn: () => turns.wait(),
        });
      } finally {
        turns.leave();
      }
    }),
  );
  for (const [n, { playing, episode }] of pair.entries()) {
    const then = played[n]!;
    const differs =
      then.status === 'fulfilled'
        ? otherwise(episode, then.value)
        : `what could be played alone could not be: ${errorText(then.reason)}`;
    if (differs === null) continue;
    throw disagrees(
      `two episodes that are played alternately disturb each other: in that of ${playing.where} ${differs} beside that of ${pair[1 - n]!.playing.where}`,
    );
  }
}

const makesCalls = ({ action }: Turn): boolean => action.kind === 'call' || action.kind === 'calls';

/** In words, the first call that brought something else when it was played again; null where there is none. */
function otherwise(first: PlayedEpisode, again: PlayedEpisode): string | null {
  const words = ({ observation }: Turn): string =>
    JSON.stringify([
      observation?.text,
      observation?.error,
      observation?.reward,
      observation?.done,
      observation?.images,
    ]);
  const i = first.turns.findIndex((turn, n) => words(turn) !== words(again.turns[n]!));
  if (i < 0) return null;
  const [one, other] = [first.turns[i]?.observation?.text, again.turns[i]?.observation?.text];
  return `call ${i + 1} gave ${JSON.stringify(one)}, then ${JSON.stringify(other)}`;
}

const disagrees = (how: string): GradusError => new GradusError('environment', 'session', how);
