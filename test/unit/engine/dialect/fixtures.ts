import { readFileSync } from 'node:fs';
import type { Json } from '../../../../core/json/json.ts';
import type { ChatMessage, ToolDescription } from '../../../../engine/dialect/contract.ts';
import { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

/** Written by `test/parity/dialects/make_fixtures.py` with Python's `transformers`. */
export interface Renderings {
  date: string;
  named: Record<string, string>;
  tools: Record<string, { function: ToolDescription }>;
  cases: {
    template: string;
    name: string;
    messages: ChatMessage[];
    tools: string[];
    add_generation_prompt: boolean;
    variables: Record<string, Json>;
    text?: string;
    ids?: number[];
    error?: string;
  }[];
}

export const families = ['qwen', 'llama', 'pythonic', 'deepseek', 'mistral'] as const;
export type Family = (typeof families)[number];

export const templateOf = (name: string): string => read(`parity/dialects/templates/${name}.jinja`);
export const tokenizerJsonOf = (family: Family): string => read(`fixtures/dialects/${family}-tokenizer.json`);
export const tokenizerOf = (family: Family): Tokenizer => Tokenizer.fromJson(tokenizerJsonOf(family));
export const renderingsOf = (family: Family): Renderings =>
  JSON.parse(read(`fixtures/dialects/${family}-renderings.json`)) as Renderings;

/** `tokenizer_config.json` of a checkpoint of such a family. */
export const configOf = (family: Family, template: string): { [key: string]: Json } => ({
  chat_template: templateOf(template),
  ...renderingsOf(family).named,
});
