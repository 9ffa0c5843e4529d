import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import { canonicalJson } from '../../../core/json/canonical-json.ts';
import type { Json } from '../../../core/json/json.ts';
import { defineEnvironment, ToolRefusal } from '../../contract/environment.ts';
import type { Environment, Task, Tool, ToolContext, Verifier } from '../../contract/environment.ts';
import type { SessionEnd, EpisodeEnd, Pin, Replay, Session, SessionPlace } from '../../contract/session.ts';
import { environmentReward } from '../../verifiers/environment-reward.ts';
import { DatasetRows, wrong } from './rows.ts';
import type { Row, RowChoices } from './rows.ts';
import { below, readResponse, request, sessionLost, shown, responseText, wrongAnswer } from './server.ts';
import { servedToolOf } from './session-tools.ts';
import type { ToolChoices } from './session-tools.ts';
import { Tether } from './tether.ts';

// NeMo Gym, https://github.com/NVIDIA-NeMo/Gym: a resources server has /seed_session, a path for each tool, and /verify; a
// session is a cookie. Tasks are the rows of a JSONL file, each with its messages and its tools. A server that was started
// anew takes an old cookie and begins with nothing, so whether it is still the same one is watched.

export interface NemoGymChoices extends RowChoices, ToolChoices {
  name: string;
  /** Of the resources server, such as http://127.0.0.1:8000. */
  url: string;
  /**
   * `replay`: where the session is gone it is seeded anew and the calls are made again. `pin`: the episode is `failed`, for
   * servers that do not do the same twice.
   */
  resume?: 'replay' | 'pin';
  /** What the server's /verify says as a score in [0, 1] unless given. */
  verifiers?: readonly Verifier[];
  /** What the server's code is; with the file's SHA-256 the environment's version. */
  version?: string;
  headers?: Record<string, string>;
}

const messageShape = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant']),
  content: z.union([z.string(), z.array(z.object({ text: z.string() }))]),
});
const rowShape = z.object({
  responses_create_params: z.object({
    input: z.union([z.string(), z.array(messageShape).min(1)]),
    instructions: z.string().nullish(),
    tools: z
      .array(
        z.object({
          type: z.literal('function'),
          name: z.string(),
          description: z.string().nullish(),
          parameters: z.record(z.string(), z.json()).nullish(),
        }),
      )
      .default([]),
  }),
});
type Params = z.infer<typeof rowShape>['responses_create_params'];

const verdictShape = z.record(z.string(), z.json()).and(z.object({ reward: z.number() }));

/**
 * The rows of a JSONL file, played on the resources server that they are for.
 * Throws GradusError('environment', 'rows') for a file, a row or a split that cannot be used.
 */
export function nemoGym(choices: NemoGymChoices): Environment {
  const { name, path, resume = 'replay', verifiers = [environmentReward()] } = choices;
  const paramsOf = (row: Row): Params => readRow(path, row);
  const rows = new DatasetRows(choices, (row) => promptOf(paramsOf(row)));
  const shared = toolsOf(
    paramsOf(rows.row({ environment: name, split: 'train', level: rows.levels[0]!, index: 0 })),
    choices,
  );
  const sharedText = textOfTools(shared);
  const open = (task: Task, place: SessionPlace): Promise<Session> =>
    GymSession.open(choices, task.info as Row, place.signal);
  const sessions: Replay | Pin = { resume, open };
  return defineEnvironment({
    name,
    version: choices.version === undefined ? rows.version : `${rows.version} ${choices.version}`,
    levels: rows.levels,
    tools: shared,
    verifiers,
    sessions,
    taskCount: (split, level) => rows.count(split, level),
    task(ref): Task {
      const row = rows.row(ref);
      const params = paramsOf(row);
      const tools = toolsOf(params, choices);
      return {
        ref,
        prompt: promptOf(params),
        info: row,
        ...(textOfTools(tools) !== sharedText && { tools }),
      };
    },
  });
}

/** One session on the server, and what was said in it, in the words of OpenAI's Responses API. */
class GymSession implements Session {
  private readonly choices: NemoGymChoices;
  private readonly row: Row;
  private readonly tether: Tether;
  private readonly cookies = new Map<string, string>();
  private readonly output: Json[] = [];

  private constructor(choices: NemoGymChoices, row: Row, tether: Tether) {
    this.choices = choices;
    this.row = row;
    this.tether = tether;
  }

  static async open(choices: NemoGymChoices, row: Row, signal: AbortSignal): Promise<GymSession> {
    const session = new GymSession(choices, row, await Tether.to(choices.url, signal));
    try {
      const { ok, status, text, at } = await session.post('seed_session', row, signal);
      if (ok) return session;
      throw wrongAnswer(at, `${status}: ${shown(text)}`);
    } catch (error) {
      session.close();
      throw error;
    }
  }

  async act(call: { name: string; arguments: Json }, { signal }: ToolContext): Promise<string> {
    const { ok, status, text, at } = await this.post(encodeURIComponent(call.name), call.arguments, signal);
    // What NeMo Gym's own agent would read, too; but a tool that is not there is nobody's mistake in the episode.
    if (status === 404) {
      throw new GradusError('environment', 'nemo-gym', `${at} is not there: the rows are for another server`);
    }
    const id = `call_${this.output.length / 2}`;
    this.output.push(
      { type: 'function_call', call_id: id, name: call.name, arguments: JSON.stringify(call.arguments) },
      { type: 'function_call_output', call_id: id, output: text },
    );
    if (!ok) throw new ToolRefusal(text);
    return text;
  }

  async end({ answer }: EpisodeEnd, signal: AbortSignal): Promise<SessionEnd> {
    const said = { type: 'output_text', text: answer ?? '', annotations: [] };
    const message = { id: 'msg', type: 'message', role: 'assistant', status: 'completed', content: [said] };
    const response = {
      id: 'resp',
      object: 'response',
      created_at: 0,
      model: 'gradus',
      output: [...this.output, ...(answer === null ? [] : [message])],
      parallel_tool_calls: false,
      tool_choice: 'auto',
      tools: [],
    };
    const { ok, status, text, at } = await this.post('verify', { ...this.row, response }, signal);
    if (!ok) throw wrongAnswer(at, `${status}: ${shown(text)}`);
    const { reward, response: _, ...more } = readResponse(at, verdictShape, text);
    // It sends the row back, too, which the task has already.
    const info = Object.fromEntries(Object.entries(more).filter(([key]) => !(key in this.row)));
    return { reward, info };
  }

  close(): void {
    this.tether.cut();
  }

  /** Throws what `request` throws, and GradusError('environment', 'session-lost') where the server is another by now. */
  private async post(
    path: string,
    body: Json,
    signal: AbortSignal,
  ): Promise<{ ok: boolean; status: number; text: string; at: string }> {
    const at = below(this.choices.url, path);
    this.assertSameServer(at);
    const cookie = [...this.cookies].map(([key, value]) => `${key}=${value}`).join('; ');
    const response = await request(at, {
      body,
      headers: { ...this.choices.headers, ...(cookie !== '' && { cookie }) },
      signal,
    });
    const text = await responseText(at, response, signal);
    this.assertSameServer(at);
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const [key = '', ...value] = pair.split('=');
      this.cookies.set(key.trim(), value.join('='));
    }
    return { ok: response.ok, status: response.status, text, at };
  }

  private assertSameServer(at: string): void {
    if (this.tether.broken) throw sessionLost(`${at}: the server has ended since the session was seeded`);
  }
}

function readRow(path: string, row: Row): Params {
  const read = rowShape.safeParse(row);
  if (read.success) return read.data.responses_create_params;
  const { path: where, message } = read.error.issues[0]!;
  throw wrong(path, `has a row that is none of NeMo Gym's: ${where.join('.')}: ${message}`);
}

/** Whose turn it was matters where there was more than one. */
function promptOf({ input, instructions }: Params): string {
  const messages = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input;
  const labelled = messages.filter(({ role }) => role === 'user' || role === 'assistant').length > 1;
  const lines = messages.map(({ role, content }) => {
    const text = typeof content === 'string' ? content : content.map((part) => part.text).join('\n');
    return labelled && role !== 'system' && role !== 'developer' ? `${role}: ${text}` : text;
  });
  return [...(instructions ? [instructions] : []), ...lines].join('\n\n');
}

const toolsOf = ({ tools }: Params, choices: ToolChoices): Tool[] =>
  tools.map(({ name, description, parameters }) =>
    servedToolOf(
      { name, description: description ?? '', arguments: { ...parameters, type: 'object' } },
      true,
      choices,
    ),
  );

const textOfTools = (tools: readonly Tool[]): string =>
  canonicalJson(tools.map((tool) => [tool.name, tool.description, tool.arguments as Json]));
