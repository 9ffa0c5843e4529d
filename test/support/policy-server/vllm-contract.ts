import type { Json } from '../../../core/json/json.ts';
import { RandomStream } from '../../../core/random.ts';
import { checksumsOf } from './checksums.ts';
import { gap, withScores } from './reference-scores.ts';
import type { Scores } from './reference-scores.ts';
import type { ServedFolders } from './served-folders.ts';

/** One thing that was compared. */
export interface Row {
  what: string;
  held: boolean;
  found: string;
}

/** What both routes of tokens answer, read. */
interface Told {
  status: number;
  tokens: number[];
  logprobs: (number | null)[];
  finish: string | null;
  stop: number | null;
  versions: { version: string; start: number; end: number }[] | null | undefined;
  prompt: number[] | null | undefined;
  promptLogprobs: ({ [id: string]: { logprob: number } } | null)[] | null | undefined;
  text: string;
}

interface Choice {
  token_ids: number[] | null;
  logprobs: { token_logprobs?: (number | null)[]; content?: { logprob: number }[] } | null;
  finish_reason: string | null;
  stop_reason: number | null;
  weight_versions?: Told['versions'];
  prompt_token_ids?: number[] | null;
  prompt_logprobs?: Told['promptLogprobs'];
}

const NONE = { tokens: [], logprobs: [], finish: null, stop: null, versions: null, prompt: null };

export class VllmClient {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async ask(
    method: string,
    path: string,
    body?: Json,
  ): Promise<{ status: number; body: unknown; text: string }> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '';
    return { status: response.status, body: isJson ? (JSON.parse(text) as unknown) : text, text };
  }

  complete(prompt: readonly number[], more: { [field: string]: Json } = {}): Promise<Told> {
    const fields = {
      prompt: [...prompt],
      logprobs: 0,
      return_token_ids: true,
      temperature: 1,
      top_p: 1,
      top_k: -1,
    };
    return this.told('/v1/completions', {
      model: 'm',
      ...fields,
      ignore_eos: true,
      max_tokens: 16,
      seed: 1,
      ...more,
    });
  }

  generate(
    prompt: readonly number[],
    sampling: { [field: string]: Json } = {},
    more: { [field: string]: Json } = {},
  ): Promise<Told> {
    const fields = {
      max_tokens: 16,
      temperature: 1,
      top_p: 1,
      top_k: 0,
      seed: 1,
      logprobs: 0,
      ignore_eos: true,
    };
    const params = { ...fields, detokenize: false, ...sampling };
    return this.told('/inference/v1/generate', {
      model: 'm',
      token_ids: [...prompt],
      sampling_params: params,
      ...more,
    });
  }

  private async told(path: string, asked: Json): Promise<Told> {
    const { status, body, text } = await this.ask('POST', path, asked);
    if (status !== 200) return { ...NONE, status, promptLogprobs: null, text };
    const answer = body as { choices: Choice[]; prompt_logprobs?: Told['promptLogprobs'] };
    const choice = answer.choices[0]!;
    const { logprobs } = choice;
    return {
      status,
      tokens: choice.token_ids ?? [],
      logprobs: logprobs?.token_logprobs ?? logprobs?.content?.map(({ logprob }) => logprob) ?? [],
      finish: choice.finish_reason,
      stop: choice.stop_reason,
      versions: choice.weight_versions,
      prompt: choice.prompt_token_ids,
      promptLogprobs: choice.prompt_logprobs ?? answer.prompt_logprobs,
      text,
    };
  }
}

/** Keys and values of one block and more, whatever a block is. */
const LONG = 260;

/**
 * What Gradus needs of a vLLM server in development mode that serves the folder `a` as "m" with raw log-probabilities in
 * float32. Leaves the server with the weights `a` and without adapters. `tolerance` in nats. `packs`: its kernels, as those for
 * processors, take matrices over into a form of their own and empty them, so digests of matrices are of nothing.
 */
export async function vllmContract(
  url: string,
  folders: ServedFolders,
  { tolerance, packs = false }: { tolerance: number; packs?: boolean },
): Promise<Row[]> {
  const rows: Row[] = [];
  const { config, a, b } = folders;
  const near = (what: string, one: readonly (number | null)[], other: readonly number[]): void => {
    const found = gap(one, other);
    rows.push({
      what,
      held: one.length > 0 && found <= tolerance,
      found: `${found.toExponential(1)} nats over ${one.length}`,
    });
  };
  const far = (what: string, one: readonly (number | null)[], other: readonly number[]): void => {
    const found = gap(one, other);
    rows.push({ what, held: one.length > 0 && found > 0.01, found: `${found.toExponential(1)} nats` });
  };
  const same = (what: string, found: unknown, expected: unknown): void => {
    const [one, other] = [shown(found), shown(expected)];
    rows.push({ what, held: one === other, found: one === other ? one.slice(0, 60) : `${one} for ${other}` });
  };
  const client = new VllmClient(url);
  await withScores(config, a.weights, undefined, (ofA) =>
    withScores(config, b.weights, undefined, async (ofB) => {
      await tokens(client, ofA, config.vocabSize, { near, same });
      await handOver(client, folders, { ofA, ofB, packs }, { near, far, same });
    }),
  );
  await adapters(client, folders, { near, same });
  return rows;
}

const shown = (value: unknown): string => JSON.stringify(value) ?? 'nothing';

type Near = (what: string, one: readonly (number | null)[], other: readonly number[]) => void;
interface Checks {
  near: Near;
  same: (what: string, found: unknown, expected: unknown) => void;
}

/** Ids that a tokenizer of any kind could give. */
export function promptOf(name: string, length: number, vocabSize: number): number[] {
  const random = new RandomStream('prompt', name);
  return Array.from({ length }, () => random.int(3, vocabSize - 1));
}

async function tokens(
  client: VllmClient,
  score: Scores,
  vocabSize: number,
  { near, same }: Checks,
): Promise<void> {
  const prompt = promptOf('tokens', 20, vocabSize);
  const first = await client.complete(prompt);
  same('ids of the prompt come back', first.prompt, prompt);
  same('a turn ends at max_tokens', [first.tokens.length, first.finish, first.stop], [16, 'length', null]);
  near('log-probs at temperature 1', first.logprobs, await score(prompt, first.tokens));
  const other = await client.generate(prompt);
  near('log-probs of /inference/v1/generate', other.logprobs, await score(prompt, other.tokens));
  same('the same seed on both routes', other.tokens, first.tokens);
  const again = await client.complete(prompt);
  same('the same seed again', again.tokens, first.tokens);
  const reseeded = await client.complete(prompt, { seed: 2 });
  same('another seed draws others', JSON.stringify(reseeded.tokens) === JSON.stringify(first.tokens), false);
  const hot = await client.complete(prompt, { temperature: 0.7 });
  near('raw log-probs at temperature 0.7 are those of 1', hot.logprobs, await score(prompt, hot.tokens));
  const cut = await client.complete(prompt, { top_p: 0.5, top_k: 20 });
  near('raw log-probs under top-k and top-p are those of all', cut.logprobs, await score(prompt, cut.tokens));
  const greedy = await client.complete(prompt, { temperature: 0 });
  near('greedy log-probs', greedy.logprobs, await score(prompt, greedy.tokens));
  const stop = first.tokens[4]!;
  const stopped = await client.complete(prompt, { stop_token_ids: [stop] });
  const expected = first.tokens.slice(0, first.tokens.indexOf(stop) + 1);
  same(
    'a stop token ends the turn and is its last',
    [stopped.tokens, stopped.finish, stopped.stop],
    [expected, 'stop', stop],
  );
  const short = await client.complete(prompt, { max_tokens: 1, prompt_logprobs: 0 });
  const scored = (short.promptLogprobs ?? [])
    .slice(1)
    .map((one, i) => one?.[String(prompt[i + 1])]?.logprob ?? null);
  near('prompt_logprobs', scored, await score(prompt.slice(0, 1), prompt.slice(1)));
  const alone = await Promise.all(
    [0, 1, 2].map((seed) => client.generate(promptOf(`${seed}`, 30, vocabSize), { seed })),
  );
  const crowd = await Promise.all(
    Array.from({ length: 12 }, (_, i) => client.generate(promptOf(`${i}`, 30, vocabSize), { seed: i })),
  );
  same(
    'tokens do not depend on who else is decoded',
    crowd.slice(0, 3).map((one) => one.tokens),
    alone.map((one) => one.tokens),
  );
  same('an unknown model', (await client.complete(prompt, { model: 'nope' })).status, 404);
  same('a prompt that is too long', (await client.complete(promptOf('long', 600, vocabSize))).status, 400);
  same('a token that is none', (await client.complete([vocabSize + 1000])).status, 400);
  for (const path of ['/health', '/version', '/v1/models', '/weight_info', '/is_paused'])
    same(path, (await client.ask('GET', path)).status, 200);
}

async function handOver(
  client: VllmClient,
  { config, a, b }: ServedFolders,
  { ofA, ofB, packs }: { ofA: Scores; ofB: Scores; packs: boolean },
  { near, far, same }: Checks & { far: Near },
): Promise<void> {
  const prompt = promptOf('hand-over', LONG, config.vocabSize);
  const reload = (folder: string) =>
    client.ask('POST', '/collective_rpc', { method: 'reload_weights', kwargs: { weights_path: folder } });
  const label = (version: string) => client.ask('POST', '/update_weight_version', { new_version: version });
  const digests = async () =>
    ((await client.ask('POST', '/weight_checker', { action: 'checksum' })).body as { checksums: Json })
      .checksums;
  const own = (weights: ServedFolders['a']['weights']) =>
    Object.entries(checksumsOf(config, weights)).map(
      ([name, digest]) => [`dp0:pp0:pcp0:tp0:${name}`, digest] as const,
    );
  const agreeing = async (weights: ServedFolders['a']['weights']) => {
    const served = (await digests()) as { [name: string]: string };
    const expected = own(weights);
    return [expected.filter(([name, digest]) => served[name] === digest).length, Object.keys(served).length];
  };

  const before = await client.generate(prompt);
  near('before: log-probs of the old weights', before.logprobs, await ofA(prompt, before.tokens));
  const all = own(a.weights);
  const kept = packs ? all.filter(([name]) => !/_proj|lm_head/.test(name)) : all;
  same('before: digests of parameters', await agreeing(a.weights), [kept.length, all.length]);
  same('before: versions', before.versions, [{ version: 'default', start: 0, end: 16 }]);
  const keep = '/pause?mode=keep&clear_cache=false';
  same('pause', (await client.ask('POST', keep)).body, { status: 'paused' });
  same('is paused', (await client.ask('GET', '/is_paused')).body, { is_paused: true });
  // Another prompt: of one with the same first block, old keys and values would be found.
  const other = promptOf('while paused', 20, config.vocabSize);
  const held = client.generate(other);
  same('reload', (await reload(b.folder)).body, { results: [null] });
  same('version', (await label('b')).body, { success: true, new_version: 'b' });
  same('resume', (await client.ask('POST', '/resume')).body, { status: 'resumed' });
  const waited = await held;
  near('a request that came while paused: the new weights', waited.logprobs, await ofB(other, waited.tokens));
  const stale = await client.generate(prompt);
  far(
    'without a reset: a known prompt is answered from old keys and values',
    stale.logprobs.slice(0, 1),
    await ofB(prompt, stale.tokens.slice(0, 1)),
  );
  const salted = await client.generate(prompt, {}, { cache_salt: 'b' });
  near('with a salt of its own: the new weights', salted.logprobs, await ofB(prompt, salted.tokens));
  same('reset', (await client.ask('POST', '/reset_prefix_cache')).body, { success: true });
  const after = await client.generate(prompt);
  near('after the reset: the new weights', after.logprobs, await ofB(prompt, after.tokens));
  same('after: versions', after.versions, [{ version: 'b', start: 0, end: 16 }]);
  same('after: digests of parameters', await agreeing(b.weights), [kept.length, all.length]);
  const baseline = Object.fromEntries(own(a.weights));
  const compared = await client.ask('POST', '/weight_checker', { action: 'compare', baseline });
  same('compared with the old ones', (compared.body as { match: boolean }).match, false);
  await client.ask('POST', '/pause?mode=abort');
  await reload(a.folder);
  await label('default');
  await client.ask('POST', '/resume');
  const back = await client.generate(prompt);
  near('and back: a pause empties the cache', back.logprobs, await ofA(prompt, back.tokens));
}

async function adapters(client: VllmClient, folders: ServedFolders, { near, same }: Checks): Promise<void> {
  const { config, a } = folders;
  const [first, second] = folders.adapters;
  const prompt = promptOf('adapters', 40, config.vocabSize);
  const load = (name: string, folder: string, more: { [field: string]: Json } = {}) =>
    client.ask('POST', '/v1/load_lora_adapter', { lora_name: name, lora_path: folder, ...more });
  const scored = (one: typeof first, ids: readonly number[]) =>
    withScores(config, a.weights, one.adapter, (score) => score(prompt, ids));
  same('an adapter that is not loaded', (await client.complete(prompt, { model: 'p-0' })).status, 404);
  same('load', (await load('p-0', first.folder)).text, "Success: LoRA adapter 'p-0' added successfully.");
  const one = await client.complete(prompt, { model: 'p-0' });
  near('log-probs of the adapter', one.logprobs, await scored(first, one.tokens));
  const base = await client.complete(prompt);
  near(
    'and of the base beside it',
    base.logprobs,
    await withScores(config, a.weights, undefined, (score) => score(prompt, base.tokens)),
  );
  same('the same name again', (await load('p-0', second.folder)).status, 400);
  same('a second one', (await load('p-1', second.folder)).status, 200);
  const two = await client.complete(prompt, { model: 'p-1' });
  near('log-probs of the second', two.logprobs, await scored(second, two.tokens));
  same('in place', (await load('p-0', second.folder, { load_inplace: true })).status, 200);
  const replaced = await client.complete(prompt, { model: 'p-0' });
  near(
    'log-probs of what was loaded in place, from another path',
    replaced.logprobs,
    await scored(second, replaced.tokens),
  );
  const models = (await client.ask('GET', '/v1/models')).body as {
    data: { id: string; root: string; parent: string | null }[];
  };
  same(
    'models: the base, and adapters with their paths',
    models.data.map(({ id, root, parent }) => [id, root, parent]),
    [
      ['m', a.folder, null],
      ['p-0', second.folder, 'm'],
      ['p-1', second.folder, 'm'],
    ],
  );
  same('a folder that is not there', (await load('p-9', `${first.folder}-nothing`)).status, 404);
  for (const name of ['p-0', 'p-1'])
    same(
      `unload ${name}`,
      (await client.ask('POST', '/v1/unload_lora_adapter', { lora_name: name })).status,
      200,
    );
  same(
    'unload once more',
    (await client.ask('POST', '/v1/unload_lora_adapter', { lora_name: 'p-0' })).status,
    404,
  );
  same('an adapter that was unloaded', (await client.complete(prompt, { model: 'p-0' })).status, 404);
}
