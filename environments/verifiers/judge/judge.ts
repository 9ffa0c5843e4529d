import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../core/json/canonical-json.ts';
import { GradusError } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import type { Json } from '../../../core/json/json.ts';
import type { TierFinding, TierVerifier } from '../../contract/environment.ts';
import { complete } from './chat-client.ts';
import type { ChatCall, ChatServer, Completion } from './chat-client.ts';
import { majorityVote } from './majority.ts';
import type { Vote } from './majority.ts';
import { judgeMessages, reminded, WORDING } from './messages.ts';
import type { JudgeMessage } from './messages.ts';
import { checkedOptions } from './options.ts';
import type { Judge, JudgeOptions } from './options.ts';
import { readAnswer } from './read-answer.ts';
import { judgeSubject } from './subject.ts';
import type { JudgeSubject } from './subject.ts';

/** One judge's part in a verdict. */
type Ballot = { usd: number } & (
  ({ kind: 'vote' } & Vote) | { kind: 'abstained'; type: string; reason: string }
);

/** Seeds are 31 bits: some servers keep them in a signed integer. */
const SEED_MASK = 0x7fff_ffff;

/**
 * A verifier that asks a model behind an OpenAI-compatible server (`POST /chat/completions`) to score an attempt by a
 * rubric. A rule decides first where it can. One to five judges are asked at once, each with its own seed; what more
 * than half agree on is the score. Everything else is an abstention with its type: `no-majority`, `refused`,
 * `unreadable`, `out-of-range`, `cut-off`, `too-long`; never a zero.
 *
 * Throws GradusError('environment', 'judge') for options that cannot work. While judging it throws
 * GradusError('verifier', 'judge-busy'), retryable, where another attempt may bring a verdict, and
 * GradusError('verifier', 'judge-key' | 'judge-request') where a person has to change something.
 */
export function judge(options: JudgeOptions): TierVerifier {
  const checked = checkedOptions(options);
  const { name, tier, cost, limits } = checked;
  const version = versionOf(checked);
  return {
    name,
    version,
    tier,
    cost,
    limits,
    ...(checked.apiKeyEnv !== undefined && { variables: [checked.apiKeyEnv] }),
    subject: (candidate) => judgeSubject(checked, candidate),
    served: {
      by: 'function',
      verify: async (asked, context) => {
        const subject = asked as unknown as JudgeSubject;
        if (subject.kind === 'decided') {
          return { kind: 'scored', score: subject.score, uncertainty: 0, evidence: subject.evidence, usd: 0 };
        }
        if (subject.kind === 'too-long') {
          return abstained('too-long', `the attempt has ${subject.bytes} bytes of JSON`, 0);
        }
        const beat = setInterval(
          () => context.heartbeat(),
          Math.min(1000, (limits.heartbeatSeconds * 1000) / 3),
        );
        try {
          return await ask(checked, version, subject.attempt, context.signal);
        } finally {
          clearInterval(beat);
        }
      },
    },
  };
}

function versionOf(judge: Judge): string {
  const {
    rubric,
    model,
    jsonSchema,
    responseFormat,
    samples,
    temperature,
    agreeWithin,
    shows,
    maxTokens,
    body,
  } = judge;
  const depends = { rubric, model, jsonSchema, responseFormat, samples, temperature, agreeWithin, shows };
  return `${judge.version}-${digest({ ...depends, maxTokens, body, wording: WORDING }).slice(0, 12)}`;
}

async function ask(judge: Judge, version: string, attempt: Json, signal: AbortSignal): Promise<TierFinding> {
  // Ends before Temporal gives the attempt up, so that the reason is told.
  const deadline = performance.now() + judge.limits.timeoutSeconds * 900;
  const server: ChatServer = { baseUrl: judge.baseUrl, apiKey: keyOf(judge) };
  const messages = judgeMessages(judge, attempt);
  const settled = await Promise.allSettled(
    Array.from({ length: judge.samples }, (_, sample) => {
      const seed = Number.parseInt(digest({ version, attempt, sample }).slice(0, 8), 16) & SEED_MASK;
      return cast(judge, server, messages, seed, { signal, deadline });
    }),
  );
  signal.throwIfAborted();
  const ballots = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const usd = ballots.reduce((sum, ballot) => sum + ballot.usd, 0);
  const votes = ballots.filter((ballot) => ballot.kind === 'vote');
  const opinion = majorityVote(votes, judge.samples, judge.agreeWithin);
  if (opinion) {
    const { score, uncertainty } = opinion;
    const reasons = opinion.votes.map(({ reason }) => reason).filter(Boolean);
    const evidence = [`${opinion.votes.length} of ${judge.samples} judges agree`, ...new Set(reasons)].join(
      '; ',
    );
    return { kind: 'scored', score, uncertainty, evidence, usd };
  }
  // Those that failed may yet bring a majority, unless no attempt can.
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
  if (failures.length > 0) throw failures.find((error) => !isRetryable(error)) ?? failures[0]!;
  const silent = ballots.filter((ballot) => ballot.kind === 'abstained');
  const reasons = silent.map(({ type, reason }) => `${type}: ${reason}`);
  if (votes.length === 0) return abstained(silent[0]!.type, [...new Set(reasons)].join('; '), usd);
  const scores = votes.map(({ score }) => score).join(', ');
  return abstained('no-majority', [`the judges said ${scores}`, ...reasons].join('; '), usd);
}

/** One judge, asked a second time if the first answer cannot be read. */
async function cast(
  judge: Judge,
  server: ChatServer,
  messages: JudgeMessage[],
  seed: number,
  call: ChatCall,
): Promise<Ballot> {
  const first = await complete(server, requestOf(judge, messages, seed), call);
  let usd = priceOf(judge, first);
  const read = first.kind === 'text' ? readAnswer(first.text, judge.schema) : first;
  if (read.kind === 'vote') return { ...read, usd };
  if (first.kind !== 'text') return { kind: 'abstained', type: first.type, reason: first.reason, usd };
  const second = await complete(server, requestOf(judge, reminded(messages), seed), call);
  usd += priceOf(judge, second);
  const again = second.kind === 'text' ? readAnswer(second.text, judge.schema) : second;
  if (again.kind === 'vote') return { ...again, usd };
  return { kind: 'abstained', type: again.type, reason: again.reason, usd };
}

function requestOf(judge: Judge, messages: JudgeMessage[], seed: number): Json {
  const { model, temperature, maxTokens, jsonSchema, responseFormat } = judge;
  const format: Json =
    responseFormat === 'json_schema'
      ? { type: responseFormat, json_schema: { name: 'verdict', strict: true, schema: jsonSchema } }
      : responseFormat === 'json_object'
        ? { type: responseFormat }
        : null;
  const body = {
    model,
    messages: messages.map((message) => ({ ...message })),
    temperature,
    seed,
    max_tokens: maxTokens,
    response_format: format,
    ...judge.body,
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** US$ by the server's count. Where it did not count, the judge's share of what a verdict is expected to cost. */
function priceOf({ prices, cost, samples }: Judge, { promptTokens, completionTokens }: Completion): number {
  if (!prices) return 0;
  if (promptTokens === undefined || completionTokens === undefined) return cost.usd / samples;
  return (promptTokens * prices.input + completionTokens * prices.output) / 1e6;
}

function keyOf({ name, apiKeyEnv }: Judge): string | undefined {
  if (apiKeyEnv === undefined) return undefined;
  const key = process.env[apiKeyEnv]?.trim();
  // fetch would name a key that is no header value in its error.
  if (key && /^[\x21-\x7E]+$/.test(key)) return key;
  throw new GradusError(
    'verifier',
    'judge-key',
    `The judge ${name} needs an API key. Start the worker of its tier with ${apiKeyEnv} set to one line of printable characters.` +
      ` "${commandLine('dev')}" passes on what GRADUS_PASS_ENV names, as in GRADUS_PASS_ENV=${apiKeyEnv}.`,
  );
}

const abstained = (type: string, reason: string, usd: number): TierFinding => ({
  kind: 'abstained',
  type,
  reason,
  usd,
});

const isRetryable = (error: Error): boolean => !(error instanceof GradusError) || error.retryable;

const digest = (value: unknown): string =>
  createHash('sha256')
    .update(canonicalJson(value as Json))
    .digest('hex');
