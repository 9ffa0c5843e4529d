import { request } from 'undici';
import { z } from 'zod';
import { messageOf } from '../core/errors.ts';
import type { LoopMessage, LoopTool, OwnAgentLoop } from '../core/extensions/agent-loop.ts';
import { untilAborted } from '../core/until-aborted.ts';
import type { Json } from '../core/json/json.ts';
import type { AgentEpisode } from './agent-episode.ts';
import { runOf } from './agent-run.ts';
import type { AgentRun } from './agent-run.ts';
import { MOST_ANSWER_BYTES } from './answer-file.ts';
import type { Gateway } from './server.ts';
import { timeoutSignal } from '../core/timeout-signal.ts';

export interface LoopRun {
  loop: OwnAgentLoop;
  options: unknown;
  task: string;
  /** A loop that has not ended by then has failed. It is left behind: nothing can end what runs in this process. */
  timeoutSeconds: number;
  signal: AbortSignal;
}

const completion = z.object({
  choices: z.array(z.object({ message: z.looseObject({ role: z.literal('assistant') }) })).length(1),
});
const observed = z.object({ text: z.string() });
const refused = z.object({ error: z.object({ message: z.string() }) });

/**
 * Has a loop of the project make an episode. Its turns come through the gateway, as those of any other agent, so that they
 * are stored, found again and put together in the same way. Otherwise as `runAgent`.
 */
export async function runLoop(
  gateway: Gateway,
  episode: AgentEpisode,
  { loop, options, task, timeoutSeconds, signal }: LoopRun,
): Promise<AgentRun> {
  signal.throwIfAborted();
  const late = timeoutSignal(timeoutSeconds * 1000);
  const over = AbortSignal.any([signal, late]);
  const variables = gateway.variablesFor(episode);
  const post = async (url: string, json: object): Promise<unknown> => {
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(json),
      signal: over,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const answer: unknown = await body.json();
    if (statusCode === 200) return answer;
    const why = refused.safeParse(answer).data?.error.message;
    throw new Error(why ?? `the gateway answered ${statusCode}`);
  };
  const turn = async (messages: readonly LoopMessage[], tools: readonly LoopTool[] = []) => {
    const described = tools.map((described) => ({ type: 'function', function: described }));
    const answer = await post(`${variables['OPENAI_BASE_URL']}/chat/completions`, {
      model: variables['OPENAI_MODEL'],
      messages,
      ...(tools.length > 0 && { tools: described }),
    });
    return completion.parse(answer).choices[0]!.message as unknown as LoopMessage;
  };
  const call = async (name: string, given: { [key: string]: Json }): Promise<string> => {
    const at = variables['GRADUS_TOOLS_URL'];
    if (at === undefined) throw new Error('no tool can be called: set agent.environmentTools in the spec');
    return observed.parse(await post(`${at}/${encodeURIComponent(name)}`, given)).text;
  };
  const tools = episode.tools?.offered.described ?? [];
  let problem: string | null = null;
  let answer: string | null = null;
  try {
    const gave: unknown = await untilAborted(
      loop.episode({ task, options: loop.options.parse(options), turn, tools, call, signal: over }),
      over,
    );
    if (gave === null || (typeof gave === 'string' && Buffer.byteLength(gave) <= MOST_ANSWER_BYTES))
      answer = gave;
    else
      problem =
        typeof gave === 'string'
          ? `"${loop.name}" gave more than ${MOST_ANSWER_BYTES} bytes`
          : `"${loop.name}" gave ${typeof gave}, and an answer is a text or null`;
  } catch (error) {
    signal.throwIfAborted();
    problem = late.aborted
      ? `"${loop.name}" had not ended after ${timeoutSeconds} s`
      : `"${loop.name}" threw: ${messageOf(error)}`;
  } finally {
    await episode.close();
  }
  signal.throwIfAborted();
  return runOf(episode, problem, answer);
}
