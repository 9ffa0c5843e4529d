import type { ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { Hono } from 'hono';
import type { Context } from 'hono';
import { sha256Hex } from '../store/digest.ts';
import type { Json } from '../core/json/json.ts';
import type { AgentEpisode } from './agent-episode.ts';
import { chatCompletions } from './api/chat-completions.ts';
import type { Api, Told } from './api/contract.ts';
import { anthropicMessages } from './api/messages.ts';
import { responses } from './api/responses.ts';
import { assertShallow } from './ask.ts';
import type { Ask } from './ask.ts';
import { bodyLimit } from './body-limit.ts';
import type { EpisodeTools } from './episode-tools.ts';
import { observationJson, servedByMcp } from './serve-tools.ts';
import { Problem, problemOf } from './problem.ts';
import { streamOf } from './stream.ts';
import { rowOf } from './turn-tree.ts';

const KEY = /^gradus-([A-Za-z0-9_-]{1,128})$/;

/** The APIs, at `/v1/…` for those who name their episode by the API key, and at `/episodes/{id}/v1/…`. */
export function createApp(
  episodes: ReadonlyMap<string, AgentEpisode>,
  { keepAliveMs }: { keepAliveMs: number },
): Hono {
  const app = new Hono();
  app.use((c: Context, next) => {
    // Of the request as it came: a copy's signal may be lost when memory is collected.
    c.set('gone', c.req.raw.signal);
    return next();
  });
  app.use(bodyLimit());
  app.onError((error, c) => told(c, apiOf(c), problemOf(error)));
  app.notFound((c) => told(c, apiOf(c), new Problem(404, 'not_found', `${c.req.path} is not served`)));
  for (const at of ['', '/episodes/:id'] as const) {
    const post = (path: string, handle: (c: Context, episode: AgentEpisode) => Promise<Response>) =>
      app.post(`${at}${path}`, (c) => handle(c, episodeOf(c, episodes)));
    const serve = (path: string, api: Api) =>
      post(path, (c, episode) => answered(c, episode, api, keepAliveMs));
    serve('/v1/chat/completions', chatCompletions);
    serve('/v1/responses', responses);
    serve('/v1/messages', anthropicMessages);
    post('/v1/messages/count_tokens', async (c, episode) => {
      const ask = await askOf(c, anthropicMessages, episode);
      return c.json({ input_tokens: episode.countTokens(ask.ask) });
    });
    app.get(`${at}/v1/models`, (c) => {
      const model = modelJson(episodeOf(c, episodes));
      return c.json({
        object: 'list',
        data: [model],
        has_more: false,
        first_id: model.id,
        last_id: model.id,
      });
    });
    app.get(`${at}/v1/models/:model`, (c) => {
      const episode = episodeOf(c, episodes);
      assertModel(episode, c.req.param('model') ?? '');
      return c.json(modelJson(episode));
    });
  }
  app.post('/episodes/:id/tools', (c) => servedByMcp(c, calledTools(c, episodes), goneOf(c)));
  app.get('/episodes/:id/tools', (c) => {
    const { offered } = toolsOf(c, episodes);
    // Nothing is told to an agent that has not asked.
    if (c.req.header('accept')?.includes('text/event-stream')) return c.body(null, 405);
    return c.json({
      tools: offered.described.map((described) => ({ type: 'function', function: described })),
    });
  });
  app.post('/episodes/:id/tools/:name', async (c) => {
    const tools = calledTools(c, episodes);
    const { json } = await bodyOf(c);
    const call = { name: c.req.param('name'), arguments: json as Json };
    const sent = { idempotencyKey: c.req.header('idempotency-key'), gone: goneOf(c) };
    return c.json(observationJson(await tools.take(call, sent)));
  });
  app.post('/episodes/:id/reward', async (c) => {
    const { reward } = (await bodyOf(c)).json as { reward?: unknown };
    if (typeof reward !== 'number' || !Number.isFinite(reward))
      throw new Problem(400, 'invalid_request', 'reward must be a number', 'reward');
    await episodeOf(c, episodes).reward(reward);
    return c.json({ reward });
  });
  return app;
}

async function answered(c: Context, episode: AgentEpisode, api: Api, keepAliveMs: number): Promise<Response> {
  const { ask, body } = await askOf(c, api, episode);
  const taken = episode.take(ask, {
    body,
    idempotencyKey: c.req.header('idempotency-key'),
    isRetry: Number(c.req.header('x-stainless-retry-count') ?? 0) > 0,
    gone: goneOf(c),
    over: overOf(c),
  });
  const { sampling, tokenizer } = episode.options;
  const toTell = taken.then((turn): Told => {
    const { promptTokens, tokens } = rowOf(episode.tree.pathOf(turn));
    const read = promptTokens.length + tokens.length - turn.tokens.length;
    return { turn, ask, promptTokens: read, textOf: (token) => tokenizer.decode([token]) };
  });
  c.header(
    'x-gradus-sampling',
    `temperature=${sampling.temperature}; top_k=${sampling.topK}; top_p=${sampling.topP}`,
  );
  if (ask.stream) {
    // Until then what goes wrong is an answer of its own.
    const still = Symbol('still being sampled');
    const soon = await Promise.race([toTell, delay(keepAliveMs, still, { ref: false })]);
    c.header('content-type', 'text/event-stream');
    c.header('cache-control', 'no-cache');
    const first = soon === still ? api.keepAlive : '';
    return c.body(streamOf(api, toTell, { first, keepAliveMs }));
  }
  return c.json(api.answer(await toTell));
}

/** Aborted when the client of a request goes. */
const goneOf = (c: Context): AbortSignal => c.get('gone') as AbortSignal;

/** When what a request gets was sent, or its client has gone. One that waits for its own connection is waited for by nobody. */
async function overOf(c: Context): Promise<void> {
  const { outgoing } = c.env as { outgoing: ServerResponse };
  if (outgoing.socket !== null) await new Promise<void>((resolve) => finished(outgoing, () => resolve()));
}

/** The episode of a request, by its path or else by its API key. */
function episodeOf(c: Context, episodes: ReadonlyMap<string, AgentEpisode>): AgentEpisode {
  const bearer = /^Bearer (.*)$/i.exec(c.req.header('authorization') ?? '')?.[1];
  const key = [bearer, c.req.header('x-api-key')].find((one) => one !== undefined && KEY.test(one));
  const id = c.req.param('id') ?? (key === undefined ? undefined : KEY.exec(key)![1]);
  if (id === undefined) {
    throw new Problem(
      401,
      'no_episode',
      'The request names no episode: ask at /episodes/{id}/v1, or with the API key gradus-{id}',
    );
  }
  const episode = episodes.get(id);
  if (!episode) throw new Problem(404, 'episode_not_found', `There is no episode ${id} here`);
  return episode;
}

function toolsOf(c: Context, episodes: ReadonlyMap<string, AgentEpisode>): EpisodeTools {
  const { tools } = episodeOf(c, episodes);
  if (tools) return tools;
  throw new Problem(
    404,
    'no_tools',
    'This episode has no tools of the environment: set agent.environmentTools in the spec',
  );
}

/** The same where one may be called. */
function calledTools(c: Context, episodes: ReadonlyMap<string, AgentEpisode>): EpisodeTools {
  const tools = toolsOf(c, episodes);
  episodeOf(c, episodes).waitFor(overOf(c));
  return tools;
}

async function askOf(c: Context, api: Api, episode: AgentEpisode): Promise<{ ask: Ask; body: string }> {
  const { json, body } = await bodyOf(c);
  const ask = api.read(json, (id) => episode.tree.get(id));
  assertModel(episode, ask.model);
  return { ask, body };
}

async function bodyOf(c: Context): Promise<{ json: object; body: string }> {
  const bytes = new Uint8Array(await c.req.arrayBuffer());
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new Problem(400, 'invalid_json', 'The body is not JSON in UTF-8');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new Problem(400, 'invalid_json', 'The body is not a JSON object');
  assertShallow(json, 'body', 'has');
  return { json, body: sha256Hex(bytes) };
}

function assertModel({ options: { model } }: AgentEpisode, asked: string): void {
  if (asked === model) return;
  throw new Problem(
    404,
    'model_not_found',
    `There is no model ${asked} here: the policy that is trained is called ${model}`,
    'model',
  );
}

/** In the shapes of both. */
const modelJson = ({ options: { model } }: AgentEpisode) => ({
  id: model,
  object: 'model',
  created: 0,
  owned_by: 'gradus',
  type: 'model',
  display_name: model,
  created_at: '1970-01-01T00:00:00Z',
});

const apiOf = (c: Context): Api =>
  c.req.path.includes('/v1/messages') || c.req.header('anthropic-version') !== undefined
    ? anthropicMessages
    : chatCompletions;

const told = (c: Context, api: Api, problem: Problem): Response =>
  c.json(api.problem(problem), problem.status);
