import { GradusError } from '../../../core/errors.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import type { SampleRequest } from '../../../engine/policy.ts';
import { badAnswer } from './connection.ts';
import type { ServerSample, VersionSpan } from './server-api.ts';

/** Nats; nothing less likely is ever drawn. vLLM gives −9999 in the place of −∞. */
const LEAST = -1000;

/**
 * Throws GradusError('policy', 'server-answer'), retryable, for what is no sample of these weights; `weights` is null where
 * they need not be named.
 */
export function assertSampled(
  url: string,
  { maxNewTokens, stopTokens }: Pick<SampleRequest, 'maxNewTokens' | 'stopTokens'>,
  { tokens, logprobs, finish, versions }: ServerSample,
  weights: string | null,
): void {
  if (tokens.length === 0 || tokens.length > maxNewTokens || logprobs.length !== tokens.length)
    throw badAnswer(
      `${url}: ${tokens.length} tokens and ${logprobs.length} log-probs where 1 to ${maxNewTokens} were asked for`,
    );
  const unlikeliest = Math.min(...logprobs);
  if (unlikeliest < LEAST)
    throw badAnswer(
      `${url}: a token was sampled whose log-prob is ${unlikeliest}: servers say this of one that they did not compute`,
    );
  if (finish === 'stop' && !stopTokens.includes(tokens.at(-1)!))
    throw badAnswer(`${url}: a turn has ended with token ${tokens.at(-1)}, which ends none`);
  if (weights === null) return;
  if (versions === null)
    throw badAnswer(`${url}: an answer does not say which weights made it: see docs/serving.md`);
  const foreign = versions.find(({ version }) => version !== weights);
  if (foreign)
    throw badAnswer(
      `${url}: tokens ${foreign.start} to ${foreign.end} are of the weights ${foreign.version}, and ${weights} were asked for`,
    );
  if (!covers(versions, tokens.length))
    throw badAnswer(`${url}: an answer says of some tokens only which weights made them`);
}

/** Whether spans, in any order, leave out no token. */
function covers(spans: readonly VersionSpan[], tokens: number): boolean {
  const end = spans
    .toSorted((a, b) => a.start - b.start)
    .reduce((until, span) => (span.start > until ? until : Math.max(until, span.end)), 0);
  return end >= tokens;
}

/**
 * Throws GradusError('policy', 'server-vocabulary') for an id that no token has. Asked again a server would draw the same
 * one: its model pads the embedding with rows that are not known to be so.
 */
export function assertTokens(
  url: string,
  tokens: readonly number[],
  { vocabSize, maskedTokens = [] }: Pick<ModelConfig, 'vocabSize' | 'maskedTokens'>,
): void {
  const isToken = (id: number): boolean =>
    id < vocabSize && !maskedTokens.some(([from, to]) => from <= id && id < to);
  const unknown = tokens.find((id) => !isToken(id));
  if (unknown === undefined) return;
  throw new GradusError(
    'policy',
    'server-vocabulary',
    `${url} sampled the id ${unknown}, which no token of the checkpoint's tokenizer.json has. Serve the model that the run begins with (gradus export writes its folder), or one whose embedding has no rows beyond its tokens`,
  );
}
