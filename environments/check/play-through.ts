import { joinedObservation } from '../../core/episode/call-by-call.ts';
import type { Episode, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { DemonstrationTurn } from '../contract/environment.ts';
import { callBlocksMs } from '../host/environment-host.ts';
import { runsInDemonstrations } from '../host/facts.ts';
import type { ToolFacts } from '../host/facts.ts';
import type { HostedEnvironment } from '../host/hosted-environment.ts';
import { PlayedSession } from '../host/played-session.ts';
import { NOT_CALLED } from './once-calls.ts';
import type { OnceCalls } from './once-calls.ts';

/** What a person's code does next. */
export interface Begun {
  what: string;
  /** How long it may keep the process from anything else: as in a run, where it is not given as long as a fast verifier. */
  seconds?: number;
}

export type Begin = (begun: Begun) => Promise<void>;

/** What became of the calls of an episode, besides what they brought. */
export interface Effects {
  /** A tool that must be called once only was really called. */
  performed: boolean;
  /** It was left out, and what follows depends on it: verifiers are not asked. */
  unjudged: boolean;
  /** Tools that are called without saying what they answer, where a supervised stage needs that. */
  untold: string[];
}

export type PlayedEpisode = Pick<Episode, 'turns' | 'status' | 'session'> & Effects;

export interface Playing {
  environment: HostedEnvironment;
  ref: TaskRef;
  tools: readonly ToolFacts[];
  turns: readonly DemonstrationTurn[];
  /** Of the session. */
  id: string;
  /** Let go of the session before every call: it has to come back. */
  letGo: boolean;
  /** Nobody has played this way through the task before: tools that must be called once only may be called. */
  first: boolean;
  once: OnceCalls;
  /** Whose turn it is with another episode; awaited before every call. */
  myTurn?: () => Promise<void>;
  /** The task and the way, in words. */
  where: string;
  begin: Begin;
  signal: AbortSignal;
}

/** Makes the calls of one of the expert's ways through a task. Throws GradusError('environment' | 'tool', …). */
export async function playThrough(playing: Playing): Promise<PlayedEpisode> {
  const { environment, ref, tools, id, letGo, first, once, myTurn, where, begin, signal } = playing;
  const turns: Turn[] = [];
  const session = new PlayedSession(environment, ref, id, tools);
  const did: Effects = { performed: false, unjudged: false, untold: [] };
  /** A call that was left out was one of the session, which cannot go on as if it had been made. */
  let cut = false;
  let made = 0;
  const observe = async (call: ToolCall, text: string | undefined, last: boolean): Promise<Observation> => {
    const tool = tools.find(({ name }) => name === call.name);
    await myTurn?.();
    await begin({
      what: `the tool ${call.name} (call ${++made} of the expert's episode of ${where})`,
      ...(tool && { seconds: callBlocksMs(tool) / 1000 }),
    });
    // What a session says is looked at in any case; other tools may have effects.
    const told = text !== undefined && tool?.ofSession === false ? { text } : null;
    const refused = told ? null : await session.refusalOf(call, { signal });
    if (refused) {
      session.note({ kind: 'call', call }, refused);
      return refused;
    }
    if (tool && text === undefined && !last && !runsInDemonstrations(tool)) did.untold.push(tool.name);
    if (tool && (told ? tool.effect === 'once' : once.leavesOut(tool, first))) {
      once.count(tool.name, 'stubbed');
      cut = tool.ofSession;
      did.unjudged ||= cut || text === undefined;
      const stub = { text: text ?? NOT_CALLED };
      session.note({ kind: 'call', call }, stub);
      return stub;
    }
    if (told) {
      session.note({ kind: 'call', call }, told);
      return told;
    }
    if (letGo) await session.close({ signal });
    if (tool?.effect === 'once') {
      once.count(tool.name, 'performed');
      did.performed = true;
    }
    const observation = await session.call(call, { signal });
    if (text !== undefined && observation.text !== text) {
      throw broken(
        `says that ${call.name} answers ${JSON.stringify(text)}, and it answers ${JSON.stringify(observation.text)}`,
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
    const last = turn === playing.turns.at(-1);
    const played: Turn = { start: 0, end: 0, text: textOf(turn), action };
    if (action.kind === 'call') played.observation = await observe(action.call, turn.observation, last);
    if (action.kind === 'calls') {
      session.begin(action.calls);
      played.results = [];
      for (const [i, call] of action.calls.entries()) {
        if (cut || played.results.some(({ done }) => done)) break;
        played.results.push(await observe(call, turn.calls![i]!.observation, last));
      }
      played.observation = joinedObservation(played.results);
    }
    turns.push(played);
    const { observation } = played;
    if (action.kind === 'answer') status = { kind: 'answered', answer: action.answer };
    if (observation?.done) status = { kind: 'ended' };
    if (cut) break;
  }
  if (environment.resume === null) return { turns, status, ...did };
  if (cut) {
    await session.close({ signal });
    return { turns, status, ...did };
  }
  await begin({ what: `the session's end() (${where})` });
  const by = status.kind === 'answered' ? 'answer' : status.kind === 'ended' ? 'environment' : 'turns';
  const ended = await session.end({ answer: answerOf({ status }), by }, { signal });
  return { turns, status, session: { ...session.kept, ended }, ...did };
}

export const answerOf = ({ status }: Pick<Episode, 'status'>): string | null =>
  status.kind === 'answered' ? status.answer : null;

function actionOf({ call, calls, answer, raw }: DemonstrationTurn): Turn['action'] {
  if ([call, calls, answer, raw].filter((one) => one !== undefined).length !== 1) {
    throw broken('has a turn with none or several of `call`, `calls`, `answer` and `raw`');
  }
  if (call !== undefined) return { kind: 'call', call };
  if (calls !== undefined)
    return { kind: 'calls', calls: calls.map(({ name, arguments: given }) => ({ name, arguments: given })) };
  return answer === undefined
    ? { kind: 'malformed', reason: 'shown as it must not be' }
    : { kind: 'answer', answer };
}

const textOf = ({ call, calls, answer, raw }: DemonstrationTurn): string =>
  raw ??
  answer ??
  (calls ?? [call!]).map(({ name, arguments: given }) => `${name} ${JSON.stringify(given)}`).join('; ');

const broken = (how: string): GradusError =>
  new GradusError('environment', 'demonstration', `its demonstration ${how}`);
