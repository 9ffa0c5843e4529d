import { joinedObservation } from '../../core/episode/call-by-call.ts';
import type { Episode, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import type { MadeTaskRef } from '../../core/refs.ts';
import type { ChatMessage, Dialect } from '../../engine/dialect/contract.ts';
import type { DemonstrationTurn } from '../../environments/contract/environment.ts';
import { runsInDemonstrations } from '../../environments/host/facts.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { HostCaller, HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { PlayedSession } from '../../environments/host/played-session.ts';
import { plainCalls, writtenTurn } from './demonstrations.ts';

/** An episode that nobody sampled: what an expert does, and what the real tools and the session make of it. */
export type ReferenceEpisode = Pick<Episode, 'tokens' | 'mask' | 'turns' | 'status' | 'session'>;

/**
 * Plays an expert's way through a task, as it would be sampled: its turns are masked in, and what it reads comes from the tools
 * wherever they may be run here. So verifiers can judge it, and a critic can say what it expects.
 * Throws GradusError('environment' | 'tool', …).
 */
export async function referenceEpisode(
  environment: HostedEnvironment,
  dialect: Dialect,
  {
    ref,
    tools = environment.tools,
    turns: shown,
  }: { ref: MadeTaskRef; tools?: readonly ToolFacts[] | undefined; turns: readonly DemonstrationTurn[] },
  id: string,
  asker: HostCaller,
): Promise<ReferenceEpisode> {
  const tokens: number[] = [];
  const mask: (0 | 1)[] = [];
  const append = (some: readonly number[], bit: 0 | 1): void => {
    for (const token of some) {
      tokens.push(token);
      mask.push(bit);
    }
  };
  const session = new PlayedSession(environment, ref, id, tools);
  const observed = async (call: ToolCall, told: string | undefined): Promise<Observation> => {
    const tool = tools.find(({ name }) => name === call.name);
    if (!tool || runsInDemonstrations(tool)) {
      // How long it took is another time each time.
      const { seconds: _, ...observation } = await session.call(call, asker);
      return observation;
    }
    if (told === undefined)
      throw broken(environment, `calls ${call.name}, which is not inline and pure, and says no observation`);
    const observation = { text: told };
    session.note({ kind: 'call', call }, observation);
    return observation;
  };
  const turns: Turn[] = [];
  let status: Episode['status'] = { kind: 'truncated', limit: 'turns' };
  try {
    for (const turn of shown) {
      if (status.kind !== 'truncated') throw broken(environment, 'goes on after its end');
      const written = writtenTurn(turn);
      const start = tokens.length;
      append(dialect.turnTokens(written), 1);
      const played: Turn = {
        start,
        end: tokens.length,
        text: dialect.turnText(written),
        action: actionOf(turn),
      };
      if (played.action.kind === 'call')
        played.observation = await observed(played.action.call, turn.observation);
      if (played.action.kind === 'calls') {
        session.begin(played.action.calls);
        played.results = [];
        for (const [i, call] of played.action.calls.entries())
          if (!played.results.some(({ done }) => done))
            played.results.push(await observed(call, turn.calls![i]!.observation));
        played.observation = joinedObservation(played.results);
      }
      if (played.action.kind === 'malformed')
        throw broken(environment, 'has a turn that is written as it must not be');
      turns.push(played);
      const { observation, results } = played;
      if (played.action.kind === 'answer') status = { kind: 'answered', answer: played.action.answer };
      else if (observation?.done) status = { kind: 'ended' };
      else if (results) append(dialect.messageTokens(results.map(toolMessage), played.text), 0);
      else append(dialect.observationTokens({ text: observation!.text }, played.text), 0);
    }
    if (environment.resume === null) return { tokens, mask, turns, status };
  } catch (error) {
    await session.close(asker);
    throw error;
  }
  const by = status.kind === 'answered' ? 'answer' : status.kind === 'ended' ? 'environment' : 'turns';
  const answer = status.kind === 'answered' ? status.answer : null;
  try {
    const ended = await session.end({ answer, by }, asker);
    return { tokens, mask, turns, status, session: { ...session.kept, ended } };
  } catch (error) {
    if (asker.signal.aborted) await session.close(asker);
    throw error;
  }
}

const toolMessage = ({ text }: Observation): ChatMessage => ({ role: 'tool', content: text });

function actionOf({ call, calls, answer, raw }: DemonstrationTurn): Turn['action'] {
  if (call !== undefined) return { kind: 'call', call };
  if (calls !== undefined) return { kind: 'calls', calls: plainCalls(calls) };
  return answer === undefined ? { kind: 'malformed', reason: raw ?? 'is empty' } : { kind: 'answer', answer };
}

const broken = ({ name }: HostedEnvironment, how: string): GradusError =>
  new GradusError('environment', 'demonstration', `an expert's way of ${name} ${how}`);
