import { advanceEpisode } from '../activities/rollout/advance-episode.ts';
import type { PolicyLease } from '../activities/rollout/policies.ts';
import type { Episode } from '../core/episode/episode.ts';
import { GradusError } from '../core/errors.ts';
import { randomKey } from '../core/random.ts';
import type { HostedEnvironment } from '../environments/host/hosted-environment.ts';

export interface PlaySettings {
  temperature: number;
  topK: number;
  topP: number;
  maxTokens: number;
  maxTurns: number;
  maxParallelCalls: number;
  seed: number;
}

let played = 0;

/**
 * One task for a policy, played as in training and written as it goes: its turns as it samples them, what tools answer,
 * and how it ended. Throws GradusError('policy', 'bad-request') for a prompt that fills the model.
 */
export async function playEpisode(
  lease: PolicyLease,
  environment: HostedEnvironment,
  prompt: string,
  settings: PlaySettings,
  write: (text: string) => void,
): Promise<Episode> {
  if (environment.resume !== null) {
    throw new GradusError(
      'policy',
      'bad-request',
      `${environment.name} has tasks that begin in a state, which your own prompt lacks: play its tasks in a run`,
    );
  }
  const { policy, tokenizer, config } = lease;
  const dialect = lease.dialectFor(environment);
  const promptTokens = dialect.promptTokens([{ role: 'user', content: prompt }]);
  if (promptTokens.length >= config.maxPositions) {
    throw new GradusError(
      'policy',
      'bad-request',
      `the prompt has ${promptTokens.length} tokens and the model holds ${config.maxPositions}: shorten it`,
    );
  }
  const {
    temperature,
    topK,
    topP,
    maxTurns,
    maxParallelCalls,
    maxTokens: maxCompletionTokens,
    seed,
  } = settings;
  const session = `episode ${++played}`;
  const episode: Episode = {
    sample: 0,
    task: 0,
    tokens: [],
    mask: [],
    samplerLogprobs: [],
    turns: [],
    status: { kind: 'running' },
  };
  const started = performance.now();
  await advanceEpisode(
    {
      policy,
      tokenizer,
      dialect,
      environment,
      ref: { environment: environment.name, split: 'train', level: environment.levels[0] ?? 1, index: 0 },
      tools: environment.tools,
      sampling: { temperature, topK, topP, maxTurns, maxParallelCalls, maxCompletionTokens },
      maxPositions: config.maxPositions,
      promptTokens,
      episodeId: session,
      policySession: session,
      key: randomKey(seed, prompt),
      signal: new AbortController().signal,
    },
    episode,
  );
  policy.release(session);
  const seconds = (performance.now() - started) / 1000;
  for (const { text, observation } of episode.turns) {
    write(`${text.trimEnd()}\n`);
    if (!observation) continue;
    write(`← ${observation.text}\n`);
    for (const { mediaType, bytes, sha256 } of observation.images ?? [])
      write(`  (${mediaType}, ${bytes} bytes, sha256:${sha256})\n`);
  }
  const sampled = episode.mask.reduce<number>((sum, bit) => sum + bit, 0);
  write(`(${ending(episode)}; ${sampled} tokens, ${Math.round(sampled / seconds)} a second)\n`);
  return episode;
}

function ending({ status }: Episode): string {
  if (status.kind === 'answered') return `answered: ${status.answer.trim()}`;
  if (status.kind === 'truncated') return `cut: no more ${status.limit}`;
  if (status.kind === 'calling') return `${status.call.name} is a long tool, which only a run calls`;
  return status.kind === 'failed' ? `failed: ${status.reason}` : status.kind;
}
