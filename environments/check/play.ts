import { GradusError } from '../../core/errors.ts';
import type { Episode, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { DemonstrationTurn } from '../contract.ts';
import { callBlocksMs } from '../host/environment-host.ts';
import { wordsOf } from '../host/facts.ts';
import type { ToolFacts } from '../host/facts.ts';
import type { HostedEnvironment } from '../host/hosted-environment.ts';
import { PlayedSession } from '../host/played-session.ts';

/** What the expert did and read, and what verifiers said of it. */
export interface Played {
  /** Negative for an example of what not to do. */
  weight: number;
  turns: { wrote: string; read: string | null; refused: Observation['error'] | null }[];
  answer: string | null;
  /** Of fast verifiers, in [0, 1]; null for an abstention. */
  scores: { verifier: string; score: number | null; why: string }[];
}

/** What a person's code does next. */
export interface Begun {
  what: string;
  /** How long it may keep the process from anything else: as in a run, where it is not given as long as a fast verifier. */
  seconds?: number;
}

export type Begin = (begun: Begun) => Promise<void>;

/** An episode of the expert as it went alone, to be played again. */
export interface Demonstrated {
  playing: Omit<Playing, 'id' | 'letGo'>;
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
): Promise<{ played: Played; demonstrated: Demonstrated }> {
  const { signal } = new AbortController();
  const where = `train, level ${ref.level}, index ${ref.index}, way ${way}`;
  await begin({ what: `demonstrate() (${where})` });
  const [shown] = await environment.demonstrations([{ ref, index: way }], { signal });
  if (shown instanceof GradusError) throw shown;
  const { demonstration, tools = environment.tools } = shown!;
  const id = `check/${process.pid}/${ref.environment}/${ref.level}/${ref.index}/${way}`;
  const play = { environment, ref, tools, turns: demonstration.turns, signal, where, begin };
  const episode = await playThrough({ ...play, id, letGo: false });
  if (COME_BACK.includes(environment.resume) && episode.turns.some(({ action }) => action.kind === 'call')) {
    const again = await playThrough({ ...play, id: `${id}/again`, letGo: true });
    const other = otherwise(episode, again);
    if (other !== null) {
      throw disagrees(`its session was let go of and came back as another one: ${other}`);
    }
  }
  const fast = environment.verifiers.filter(({ tier }) => tier === 'fast').map(({ name }) => name);
  await begin({ what: `its verifiers (${where})` });
  const [said] = await environment.verdicts(fast, [{ ref, episode }], { signal });
  if (said instanceof GradusError) throw said;
  const played: Played = {
    weight: demonstration.weight,
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
    ({ episode }) => episode.turns.filter(({ action }) => action.kind === 'call').length > 0,
  );
  if (one === undefined) return;
  const other = others.find(({ playing }) => playing.ref.index !== one.playing.ref.index) ?? one;
  const pair = [one, other];
  const turns = new InTurn(pair.length);
  const played = await Promise.allSettled(
    pair.map(async ({ playing }, n) => {
      const id = `check/${process.pid}/${playing.ref.environment}/${playing.ref.level}/together/${n}`;
      try {
        return await playThrough({ ...playing, begin, id, letGo: false, myTurn: () => turns.wait() });
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
        : `what could be played alone could not be: ${wordsOf(then.reason)}`;
    if (differs === null) continue;
    throw disagrees(
      `two episodes that are played by turns disturb each other: in that of ${playing.where} ${differs} beside that of ${pair[1 - n]!.playing.where}`,
    );
  }
}

/** Those who wait are let go one at a time, whoever has waited longest, when all wait. */
class InTurn {
  private readonly waiting: (() => void)[] = [];
  private players: number;

  constructor(players: number) {
    this.players = players;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.next();
    });
  }

  leave(): void {
    this.players--;
    this.next();
  }

  private next(): void {
    if (this.waiting.length === this.players) this.waiting.shift()?.();
  }
}

type PlayedEpisode = Pick<Episode, 'turns' | 'status' | 'session'>;

interface Playing {
  environment: HostedEnvironment;
  ref: TaskRef;
  tools: readonly ToolFacts[];
  turns: readonly DemonstrationTurn[];
  /** Of the session. */
  id: string;
  /** Let go of the session before every call: it has to come back. */
  letGo: boolean;
  /** Whose turn it is with another episode; awaited before every call. */
  myTurn?: () => Promise<void>;
  /** The task and the way, in words. */
  where: string;
  begin: Begin;
  signal: AbortSignal;
}

async function playThrough(playing: Playing): Promise<PlayedEpisode> {
  const { environment, ref, tools, id, letGo, myTurn, where, begin, signal } = playing;
  const turns: Turn[] = [];
  const session = new PlayedSession(environment, ref, id, tools);
  const observe = async (turn: DemonstrationTurn, call: ToolCall): Promise<Observation> => {
    const { observation: said } = turn;
    const tool = tools.find(({ name }) => name === call.name);
    await myTurn?.();
    await begin({
      what: `the tool ${call.name} (call ${turns.length + 1} of the expert's episode of ${where})`,
      ...(tool && { seconds: callBlocksMs(tool) / 1000 }),
    });
    // What a session says is looked at in any case; other tools may have effects.
    const told = said !== undefined && tool?.ofSession === false;
    const known = told ? { text: said } : await session.refusalOf(call, { signal });
    if (known !== null) {
      session.note({ kind: 'call', call }, known);
      return known;
    }
    if (letGo) await session.close({ signal });
    const observation = await session.call(call, { signal });
    if (said !== undefined && observation.text !== said) {
      throw broken(
        `says that ${call.name} answers ${JSON.stringify(said)}, and it answers ${JSON.stringify(observation.text)}`,
      );
    }
    return observation;
  };
  let status: Episode['status'] = { kind: 'truncated', limit: 'turns' };
  for (const turn of playing.turns) {
    if (status.kind !== 'truncated') {
      throw broken(`goes on after ${status.kind === 'ended' ? 'the environment has ended it' : 'an answer'}`);
    }
    const action = actionOf(turn);
    const observation = action.kind === 'call' ? await observe(turn, action.call) : undefined;
    turns.push({ start: 0, end: 0, text: textOf(turn), action, ...(observation && { observation }) });
    if (action.kind === 'answer') status = { kind: 'answered', answer: action.answer };
    if (observation?.done) status = { kind: 'ended' };
  }
  if (environment.resume === null) return { turns, status };
  await begin({ what: `the session's end() (${where})` });
  const by = status.kind === 'answered' ? 'answer' : status.kind === 'ended' ? 'environment' : 'turns';
  const ended = await session.end({ answer: answerOf({ status }), by }, { signal });
  return { turns, status, session: { ...session.kept, ended } };
}

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

const answerOf = ({ status }: Pick<Episode, 'status'>): string | null =>
  status.kind === 'answered' ? status.answer : null;

function actionOf({ call, answer, raw }: DemonstrationTurn): Turn['action'] {
  if ([call, answer, raw].filter((one) => one !== undefined).length !== 1) {
    throw broken('has a turn with none or several of `call`, `answer` and `raw`');
  }
  if (call !== undefined) return { kind: 'call', call };
  return answer === undefined
    ? { kind: 'malformed', reason: 'shown as it must not be' }
    : { kind: 'answer', answer };
}

const textOf = ({ call, answer, raw }: DemonstrationTurn): string =>
  raw ?? answer ?? `${call!.name} ${JSON.stringify(call!.arguments)}`;

const broken = (how: string): GradusError =>
  new GradusError('environment', 'demonstration', `its demonstration ${how}`);
