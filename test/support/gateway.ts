import { readFileSync } from 'node:fs';
import { randomKey } from '../../core/random.ts';
import type { SamplingSpec } from '../../core/schema/sampling.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import type { LocalPolicy } from '../../engine/policy.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import type { AgentEpisodeOptions } from '../../gateway/agent-episode.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { randomWeights, smallConfig } from './engine/random-model.ts';
import { tokenizer } from './fixture-tokenizer.ts';

// Agents' episodes with a small random model that speaks the dialect gradus, or recorded turns in that of Qwen.

const maxPositions = 4000;
const config = { ...smallConfig, vocabSize: tokenizer.vocabSize, maxPositions };

const sampling: SamplingSpec = {
  temperature: 1,
  topK: 0,
  topP: 1,
  maxTurns: 20,
  maxCompletionTokens: 3000,
};

export async function randomPolicy(): Promise<LocalPolicy> {
  const policy = createDecoder({ threads: 1 });
  await policy.load('v1', config, randomWeights(config));
  return policy;
}

export const episodeOptions = (
  policy: AgentEpisodeOptions['policy'],
  store: ObjectStore,
  id: string,
  more: Partial<AgentEpisodeOptions> = {},
): AgentEpisodeOptions => ({
  id,
  model: 'policy',
  policy,
  tokenizer,
  dialectFor: (tools) => openDialect(tokenizer, { gradus_dialect: { name: 'gradus' } }, tools),
  maxPositions,
  sampling,
  key: randomKey('agents', id),
  store,
  folder: `agents/${id}`,
  startsOver: false,
  ...more,
});

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

export const qwen = Tokenizer.fromJson(read('fixtures/dialects/qwen-tokenizer.json'));
const qwenConfig = {
  chat_template: read('parity/dialects/templates/qwen2.5-like.jinja'),
  eos_token: '<|im_end|>',
};
export const speaksQwen: Pick<AgentEpisodeOptions, 'tokenizer' | 'dialectFor'> = {
  tokenizer: qwen,
  dialectFor: (tools) => openDialect(qwen, qwenConfig, tools),
};

/** Of an agent in JavaScript: `ask(content)` asks the policy one thing, and gives the response. */
export const ASKS = `const ask = (content) => fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
  method: 'POST', body: JSON.stringify({ model: process.env.OPENAI_MODEL, messages: [{ role: 'user', content }] }) });`;
