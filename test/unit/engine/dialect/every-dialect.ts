import type { Json } from '../../../../core/json/json.ts';
import { register } from '../../../../core/extensions/registry.ts';
import plainCalls from '../../../../examples/own-dialect.ts';
import type { Dialect } from '../../../../engine/dialect/contract.ts';
import { gradusDialect } from '../../../../engine/dialect/gradus/dialect.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import type { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { tokenizer as own } from '../../activities/test-environment.ts';
import { configOf, renderingsOf, tokenizerOf } from './fixtures.ts';

register(plainCalls);
const qwen = tokenizerOf('qwen');
const calculator = renderingsOf('qwen').tools['calculator']!.function;
const open = (tokenizer: Tokenizer, config: { [key: string]: Json }): [Dialect, Tokenizer] => [
  openDialect(tokenizer, config, [calculator]),
  tokenizer,
];
const tags = (name: string) => open(qwen, { ...configOf('qwen', 'qwen2.5-like'), gradus_dialect: { name } });

/** Every dialect, with the calculator as its tool, and its tokenizer. */
export const DIALECTS: Record<string, [Dialect, Tokenizer]> = {
  gradus: [gradusDialect(own), own],
  hermes: open(qwen, configOf('qwen', 'qwen2.5-like')),
  'hermes, thinking': open(qwen, configOf('qwen', 'qwen3-like')),
  llama3: open(tokenizerOf('llama'), configOf('llama', 'llama3.1-like')),
  pythonic: open(tokenizerOf('pythonic'), {
    ...configOf('pythonic', 'pythonic-like'),
    gradus_dialect: { name: 'pythonic' },
  }),
  deepseek: open(tokenizerOf('deepseek'), configOf('deepseek', 'deepseek-r1-like')),
  'deepseek, without a fence': open(tokenizerOf('deepseek'), configOf('deepseek', 'deepseek-v3.1-like')),
  mistral: open(tokenizerOf('mistral'), configOf('mistral', 'mistral-like')),
  'mistral, with [ARGS]': open(tokenizerOf('mistral'), configOf('mistral', 'mistral-args-like')),
  'search-r1': tags('search-r1'),
  retool: tags('retool'),
  own: open(qwen, { gradus_dialect: { name: 'own', own: { name: plainCalls.name, options: {} } } }),
};
