import type { Score, TokenScores } from '../../core/algorithms/scores.ts';
import { GradusError } from '../../core/errors.ts';
import { readSafetensors, writeSafetensors } from '../../engine/safetensors/safetensors.ts';
import type { Codec } from '../codec.ts';

const FORMAT = 'gradus.scores/1';
const NAMES: readonly Score[] = ['values', 'reference', 'policy'];

/** Scores of a step as one safetensors object. Throws GradusError('store', 'invalid-scores') for another one. */
export const scoresCodec: Codec<TokenScores> = {
  contentType: 'application/octet-stream',
  encode: (scores) =>
    writeSafetensors(
      new Map(Object.entries(scores).map(([name, data]) => [name, { shape: [data.length], data }])),
      { format: FORMAT },
    ),
  decode: (bytes) => {
    const { tensors, metadata } = readSafetensors(bytes);
    if (metadata['format'] !== FORMAT) throw invalid(`its format is ${metadata['format'] ?? 'not given'}`);
    const scores: TokenScores = {};
    for (const [name, { data }] of tensors) {
      const known = NAMES.find((one) => one === name);
      if (!known || !(data instanceof Float32Array)) throw invalid(`${name} is no score of dtype F32`);
      scores[known] = data;
    }
    return scores;
  },
};

const invalid = (what: string): GradusError =>
  new GradusError('store', 'invalid-scores', `not scores of tokens: ${what}. Score the step again`);
