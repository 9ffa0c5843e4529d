import { GradusError } from '../../core/errors.ts';
import type { Episode, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { DemonstrationTurn } from '../contract.ts';
import type { ToolFacts } from '../host/facts.ts';
import type { HostedEnvironment } from '../host/hosted-environment.ts';
import { PlayedSession } from '../host/played-session.ts';

/** What the expert did and read, and what verifiers said of it. */
export interface Played {
  /** Negative for an example of what not to do. */
  weight: number;
  turns: { wrote: string; read: string | null; refused: boolean }[];
  answer: string | null;
  /** Of fast verifiers, in [0, 1]; null for an abstention. */
  scores: { verifier: string; score: number | null; why: string }[];
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
): Promise<Played> {
  const { signal } = new AbortController();
  const [shown] = await environment.demonstrations([{ ref, index: way }], { signal });
  if (shown instanceof GradusError) throw shown;
  const { demonstration, tools = environment.tools } = shown!;
  const id = `check/${process.pid}/${ref.environment}/${ref.level}/${ref.index}/${way}`;
  const play = { environment, ref, tools, turns: demonstration.turns, signal };
  const episode = await playThrough({ ...play, id, letGo: false });
  if (COME_BACK.includes(environment.resume) && episode.turns.some(({ action }) => action.kind === 'call')) {
    assertSame(episode, await playThrough({ ...play, id: `${id}/again`, letGo: true }));
  }
  const fast = environment.verifiers.filter(({ tier }) => tier === 'fast').map(({ name }) => name);
  const [said] = await environment.verdicts(fast, [{ ref, episode }], { signal });
  if (said instanceof GradusError) throw said;
  return {
    weight: demonstration.weight,
    turns: episode.turns.map(({ text, observation }) => ({
      wrote: text,
      read: observation?.text ?? null,
      refused: observation?.error !== undefined,
    })),
    answer: answerOf(episode),
    scores: said!.map(({ verifier, score, fault, evidence }) => ({
      verifier,
      score,
      why: fault ?? evidence ?? '',
    })),
  };
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
  signal: AbortSignal;
}

async function playThrough(playing: Playing): Promise<PlayedEpisode> {
  const { environment, ref, tools, id, letGo, signal } = playing;
  const turns: Turn[] = [];
  const session = new PlayedSession(environment, ref, id, tools);
  const observe = async (turn: DemonstrationTurn, call: ToolCall): Promise<Observation> => {
    const { observation: said } = turn;
    // What a session says is looked at in any case; other tools may have effects.
    const told = said !== undefined && !tools.some(({ name, ofSession }) => ofSession && name === call.name);
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
  const by = status.kind === 'answered' ? 'answer' : status.kind === 'ended' ? 'environment' : 'turns';
  const ended = await session.end({ answer: answerOf({ status }), by }, { signal });
  return { turns, status, session: { ...session.kept, ended } };
}

/** Throws GradusError('environment', 'session') that says where a session that came back was another one. */
function assertSame(first: PlayedEpisode, again: PlayedEpisode): void {
  const words = ({ observation }: Turn): string =>
    JSON.stringify([
      observation?.text,
      observation?.error,
      observation?.reward,
      observation?.done,
      observation?.images,
    ]);
  const i = first.turns.findIndex((turn, n) => words(turn) !== words(again.turns[n]!));
  const [one, other] = [first.turns[i]?.observation?.text, again.turns[i]?.observation?.text];
  if (i >= 0) {
    throw new GradusError(
      'environment',
      'session',
      `its session was let go of and came back as another one: call ${i + 1} gave ${JSON.stringify(one)}, then ${JSON.stringify(other)}`,
    );
  }
}

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
