import { GradusError } from '../../../core/errors.ts';
import { RandomStream } from '../../../core/random.ts';
import type { ServedPolicySpec } from '../../../core/schema/policy.ts';
import type { Replica } from './replica.ts';

/** Every vocabulary has more tokens than this. */
const TOKENS = 48;
const PROMPTS = 4;
const PROMPT_TOKENS = 16;
/** Where what is scaled and what is not differ. */
const TEMPERATURE = 0.5;
/** Log-probs that are closer than this are the same; nats. */
const SAME = 0.01;

/**
 * What a run needs of a server, tried on the model that it holds. Throws GradusError('policy', 'server-cannot'), which
 * names what is missing and how the server is to be started.
 */
export async function assertCapable(
  { url, api }: Replica,
  { model: named, adapters, held, server }: ServedPolicySpec,
  scalesLogits: boolean,
  signal: AbortSignal,
): Promise<void> {
  const cannot = (what: string): never => {
    throw new GradusError('policy', 'server-cannot', `${url} (${server}) ${what}`);
  };
  const models = await api.models(signal);
  const model = named ?? models[0]!;
  if (!models.includes(model))
    cannot(`has no model ${model}, only ${models.join(', ')}: give policy.model one of these names`);
  const random = new RandomStream('server-capabilities');
  let unscaled = 0;
  for (let seed = 0; seed < PROMPTS; seed++) {
    const tokens = Array.from({ length: PROMPT_TOKENS }, () => random.int(1, TOKENS - 1));
    const asked = { model, tokens, salt: 'capabilities' };
    const one = await api.sample(
      { ...asked, maxNewTokens: 1, stopTokens: [], temperature: TEMPERATURE, seed },
      signal,
    );
    if (one.tokens.length !== 1 || one.logprobs.length !== 1)
      cannot(`answers one token with ${one.tokens.length} ids and ${one.logprobs.length} log-probs`);
    if (!adapters && !held && one.versions === null)
      cannot(
        'does not say which weights made a token: start vLLM from 0.33 on, or an older one with --enable-scale-out, or train a LoRA adapter (model.lora)',
      );
    const whole = await api.score({ ...asked, tokens: [...tokens, ...one.tokens] }, signal);
    if (Math.abs(whole.at(-1)! - one.logprobs[0]!) < SAME) unscaled++;
  }
  if (scalesLogits && unscaled === PROMPTS)
    cannot(
      'gives log-probs of temperature 1 whatever the temperature is: start vLLM with --logprobs-mode processed_logprobs, or sample at temperature 1',
    );
}
