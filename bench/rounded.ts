import { randomKey, RandomStream } from '../core/random.ts';
import type { ModelConfig } from '../core/model/config.ts';
import type { LocalPolicy } from '../engine/policy.ts';

/** What weights of the decoder are rounded to, for benches that compare it with float32. */
export const ROUNDED = ['bfloat16', 'int8'] as const;

const PROMPT = 32;
const sampling = { temperature: 1, topK: 0, topP: 1 };
let sessions = 0;

function promptFor({ vocabSize }: Pick<ModelConfig, 'vocabSize'>): number[] {
  const random = new RandomStream('rounded');
  // What lies beyond may have no token.
  return Array.from({ length: PROMPT }, () => random.int(0, Math.floor(vocabSize * 0.9)));
}

const sample = (policy: LocalPolicy, config: ModelConfig, place: number, maxNewTokens: number) => {
  const session = `rounded/${++sessions}`;
  const key = randomKey('rounded', place);
  const asked = { session, prefix: promptFor(config), continuation: [], stopTokens: [], sampling };
  return policy.sample({ ...asked, key, maxNewTokens }).finally(() => policy.release(session));
};

/** Tokens per second of so many episodes at once, whose prompt is computed already. */
export async function tokensPerSecond(
  policy: LocalPolicy,
  config: ModelConfig,
  { batch, tokens }: { batch: number; tokens: number },
): Promise<number> {
  const together = (count: number) =>
    Promise.all(Array.from({ length: batch }, (_, i) => sample(policy, config, i, count)));
  await together(1);
  const start = performance.now();
  await together(tokens);
  return (1000 * batch * tokens) / (performance.now() - start);
}

export type Drawn = Awaited<ReturnType<typeof drawnBy>>;

/** One episode of so many tokens, with their log-probs. */
export const drawnBy = (policy: LocalPolicy, config: ModelConfig, tokens: number) =>
  sample(policy, config, 0, tokens);

/** Mean |log-prob of the sampler − that of `exact`|, nats a token. */
export async function meanGap(exact: LocalPolicy, config: ModelConfig, drawn: Drawn): Promise<number> {
  const session = `rounded/${++sessions}`;
  let sum = 0;
  for (const [i, token] of drawn.tokens.entries()) {
    const { alternatives } = await exact.sample({
      session,
      prefix: promptFor(config),
      continuation: drawn.tokens.slice(0, i),
      stopTokens: [],
      maxNewTokens: 1,
      sampling,
      key: randomKey('gap', i),
      alternatives: { most: 0, also: [token] },
    });
    const { logprob } = alternatives![0]!.find((one) => one.token === token)!;
    sum += Math.abs(logprob - drawn.samplerLogprobs[i]!);
  }
  exact.release(session);
  return sum / drawn.tokens.length;
}
