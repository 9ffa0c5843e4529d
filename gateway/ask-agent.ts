import { request } from 'undici';
import { z } from 'zod';
import { readTextUpTo } from '../core/byte-parts.ts';
import { messageOf } from '../core/errors.ts';
import type { AgentEpisode } from './agent-episode.ts';
import { failedRun, runOf } from './agent-run.ts';
import type { AgentRun } from './agent-run.ts';
import { MOST_ANSWER_BYTES } from './answer-file.ts';
import type { Gateway } from './server.ts';
import { timeoutSignal } from '../core/timeout-signal.ts';

export interface AgentServer {
  /** Where the task is posted. */
  url: string;
  task: string;
  /** An agent that has not answered by then has failed. */
  timeoutSeconds: number;
  signal: AbortSignal;
}

const answered = z.looseObject({ answer: z.string().nullish() });

/**
 * Posts a task to a server that is an agent, `{"task": …, "variables": {"OPENAI_BASE_URL": …}}`, and waits for its
 * `{"answer": …}`. Otherwise as `runAgent`; a server that is not there counts as killed.
 */
export async function askAgent(
  gateway: Gateway,
  episode: AgentEpisode,
  { url, task, timeoutSeconds, signal }: AgentServer,
): Promise<AgentRun> {
  signal.throwIfAborted();
  const late = timeoutSignal(timeoutSeconds * 1000);
  try {
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task, variables: gateway.variablesFor(episode) }),
      signal: AbortSignal.any([signal, late]),
      // The time that it has is that of the episode.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const text = await readTextUpTo(body, MOST_ANSWER_BYTES);
    await episode.close();
    if (text === undefined)
      return runOf(episode, `its server answered more than ${MOST_ANSWER_BYTES} bytes`, null);
    if (statusCode !== 200)
      return runOf(episode, `its server answered ${statusCode}: ${text.slice(0, 2000)}`, null);
    const said = answered.safeParse(jsonOf(text));
    if (!said.success)
      return runOf(episode, `its server answered no {"answer": …}: ${text.slice(0, 200)}`, null);
    return runOf(episode, null, said.data.answer ?? null);
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) {
      await episode.close();
      return runOf(episode, `it had not answered after ${timeoutSeconds} s`, null);
    }
    return { ...failedRun(`${url} did not answer (${messageOf(error)})`), killed: true };
  } finally {
    await episode.close();
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
