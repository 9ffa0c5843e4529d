import type { Json } from '../core/json/json.ts';
import { fromHfConfig } from './hf-config.ts';
import type { ModelConfig } from '../core/model/config.ts';
import { idsWithoutToken } from './tokenizer/ids-without-token.ts';

/**
 * The model that its `config.json` and `tokenizer.json` describe together: rows of the embedding that no token has are
 * masked wherever this configuration goes, in decoding and in training alike. Throws what `fromHfConfig` throws.
 */
export function modelConfigOf(configJson: Json, tokenizerJson: Json): ModelConfig {
  const config = fromHfConfig(configJson);
  const maskedTokens = idsWithoutToken(tokenizerJson, config.vocabSize);
  return maskedTokens.length === 0 ? config : { ...config, maskedTokens };
}
