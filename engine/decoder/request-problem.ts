import type { ModelConfig } from '../../core/model/config.ts';
import { MOST_BEAMS } from '../../core/schema/beams.ts';
import type { SampleRequest } from '../policy.ts';

/** Backends take it as an int32: a fraction or more would be another number to them. */
const MOST_TOP_K = 2 ** 31 - 1;
/** They are for people, who read no more. */
const MOST_ALTERNATIVES = 64;

/** Why a request makes no sense to a model, or undefined. */
export function problemOf(
  { prefix, continuation, mask, sampling, alternatives, beams }: SampleRequest,
  config: ModelConfig,
): string | undefined {
  if (prefix.length === 0) return 'The prefix is empty. Give at least one prompt token.';
  const known = (token: number) => Number.isInteger(token) && token >= 0 && token < config.vocabSize;
  const stranger = prefix.find((token) => !known(token)) ?? continuation.find((token) => !known(token));
  if (stranger !== undefined) {
    return `Token ${stranger} is not in the vocabulary of ${config.vocabSize}. Tokenize with this model's tokenizer.`;
  }
  if (mask !== undefined && mask.length !== continuation.length) {
    return `The mask has ${mask.length} entries for ${continuation.length} tokens. Give one for each.`;
  }
  const { temperature, topK, topP } = sampling;
  const isCount = Number.isInteger(topK) && topK >= 0 && topK <= MOST_TOP_K;
  if (!(temperature >= 0) || !isCount || !(topP >= 0 && topP <= 1)) {
    return `Temperature ${temperature}, top-k ${topK} or top-p ${topP} is out of range. Use ≥ 0, a whole number from 0 to ${MOST_TOP_K} and 0 to 1.`;
  }
  const { most, also = [] } = alternatives ?? { most: 0 };
  if (!(Number.isInteger(most) && most >= 0 && most <= MOST_ALTERNATIVES) || !also.every(known)) {
    return `${most} alternatives (and ${also.join(', ') || 'no others'}) cannot be told. Ask for 0 to ${MOST_ALTERNATIVES}, and tokens below ${config.vocabSize}.`;
  }
  if (beams === undefined) return undefined;
  const { width, groups, diversity, group = 0 } = beams;
  const isShared = Number.isInteger(width / groups) && width >= groups && groups >= 1 && width <= MOST_BEAMS;
  const isGroup = Number.isInteger(group) && group >= 0 && group < groups;
  if (!isShared || !isGroup || !(diversity >= 0 && diversity < Infinity)) {
    return `${width} beams in ${groups} groups, of which ${group} is asked for, with a penalty of ${diversity}, are no search. Use up to ${MOST_BEAMS} beams, in groups of as many each, and a penalty of 0 or more.`;
  }
  if (topK > 0 || topP < 1 || alternatives !== undefined) {
    return 'Beams are the likeliest turns of all. Leave out top-k, top-p and alternatives.';
  }
  return undefined;
}
