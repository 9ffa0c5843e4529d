import { readFileSync } from 'node:fs';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';

// The small tokenizer of the fixtures, which speaks the dialect `gradus`.

export const tokenizerJson = readFileSync(
  new URL('../fixtures/tokenizer/tokenizer.json', import.meta.url),
  'utf8',
);
export const tokenizer = Tokenizer.fromJson(tokenizerJson);
