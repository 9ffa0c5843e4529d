import type { DialectSpec } from '../../core/schema/dialect.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import { parseForeignJson } from '../foreign-json.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import { DIALECTS } from '../../core/names.ts';
import { SPECIAL_TOKENS } from './gradus/special-tokens.ts';

/** `tokenizer_config.json`. Besides what `transformers` reads, `gradus_dialect` records how the policy is spoken to. */
export type TokenizerConfig = { [key: string]: Json };

/** The small files of a model, by name. */
type Files = ReadonlyMap<string, Uint8Array>;

const CONFIG = 'tokenizer_config.json';

/**
 * `tokenizer_config.json` with what other files add, as `transformers` reads them: `chat_template.jinja` comes before
 * the template inside, `special_tokens_map.json` after the tokens inside. Empty where there is none of them.
 * Throws GradusError('policy', 'dialect') for what is no JSON object.
 */
export function tokenizerConfigOf(files: Files): TokenizerConfig {
  const template = files.get('chat_template.jinja');
  return {
    ...jsonObject(files, 'special_tokens_map.json'),
    ...jsonObject(files, CONFIG),
    ...(template && { chat_template: new TextDecoder().decode(template) }),
  };
}

/** The file in which a dialect is recorded, with this one in it; other software passes the field over. */
export function withDialect(files: Files, dialect: DialectSpec): Map<string, Uint8Array> {
  const config = { ...jsonObject(files, CONFIG), gradus_dialect: { ...dialect } };
  return new Map([[CONFIG, new TextEncoder().encode(`${JSON.stringify(config, null, 2)}\n`)]]);
}

function jsonObject(files: Files, name: string): TokenizerConfig {
  const bytes = files.get(name);
  if (!bytes) return {};
  let json: unknown;
  try {
    json = parseForeignJson(bytes);
  } catch (cause) {
    throw new GradusError('policy', 'dialect', `${name} is not JSON (${messageOf(cause)}): fix it`, {
      cause,
    });
  }
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as TokenizerConfig;
  throw new GradusError(
    'policy',
    'dialect',
    `${name} is not a JSON object: take the one saved with the model`,
  );
}

/**
 * The dialect of a checkpoint: the recorded one; else `gradus` for a tokenizer with all of its special tokens and no
 * chat template; else what the chat template writes: `hermes` for `<tool_call>`, `mistral` for `[TOOL_CALLS]`, `deepseek` for
 * `<｜tool▁call▁begin｜>`, `pythonic` for `<|python_start|>`, `llama3` for the `ipython` role. `search-r1` and `retool` leave no trace in a checkpoint, and are
 * chosen by the spec; so is `pythonic` with the template of Llama 3.
 * Throws GradusError('policy', 'dialect') when nothing says it.
 */
export function dialectOfCheckpoint(tokenizer: Tokenizer, config: TokenizerConfig): DialectSpec {
  const recorded = config['gradus_dialect'];
  if (recorded !== undefined) {
    const name = (recorded as { name?: unknown } | null)?.name;
    if (name !== 'own' && !(DIALECTS as readonly unknown[]).includes(name)) {
      throw unknown(
        `The checkpoint's tokenizer_config.json records the dialect ${JSON.stringify(recorded)}, which is none`,
      );
    }
    return recorded as unknown as DialectSpec;
  }
  const template = chatTemplateOf(config, true);
  if (template === undefined) {
    if (SPECIAL_TOKENS.every((token) => tokenizer.has(token))) return { name: 'gradus' };
    throw unknown('The checkpoint has no chat template and not the special tokens of the dialect gradus');
  }
  if (template.includes('<tool_call>')) return { name: 'hermes' };
  if (template.includes('[TOOL_CALLS]')) return { name: 'mistral' };
  if (template.includes('<｜tool▁call▁begin｜>')) return { name: 'deepseek' };
  if (template.includes('<|python_start|>')) return { name: 'pythonic' };
  if (/\bipython\b/u.test(template)) return { name: 'llama3' };
  throw unknown(
    "The checkpoint's chat template writes none of <tool_call>, [TOOL_CALLS], <｜tool▁call▁begin｜>, <|python_start|> and the role ipython",
  );
}

/** The template that `transformers` would take: of several, `tool_use` where there are tools and it exists. */
export function chatTemplateOf(config: TokenizerConfig, withTools: boolean): string | undefined {
  const written = config['chat_template'];
  if (typeof written === 'string') return written;
  if (!Array.isArray(written)) return undefined;
  const named = new Map(
    (written as { name: string; template: string }[]).map(({ name, template }) => [name, template]),
  );
  return (withTools ? named.get('tool_use') : undefined) ?? named.get('default');
}

/** The special tokens that a template may name, such as `bos_token`. */
export function namedSpecialTokens(config: TokenizerConfig): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const name of [
    'bos_token',
    'eos_token',
    'unk_token',
    'sep_token',
    'pad_token',
    'cls_token',
    'mask_token',
  ]) {
    const value = config[name] as string | { content?: string } | null | undefined;
    const content = typeof value === 'string' ? value : value?.content;
    if (typeof content === 'string') tokens[name] = content;
  }
  return tokens;
}

const unknown = (why: string): GradusError =>
  new GradusError('policy', 'dialect', `${why}: name its dialect in model.dialect (${DIALECTS.join(', ')}).`);
