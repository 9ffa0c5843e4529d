import { createHash } from 'node:crypto';
import { keyOfDraws } from '../../core/episode/draws.ts';
import type { Episode, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { ModelConfig } from '../../core/model/config.ts';
import type { OpenGroup } from '../../core/requests/rollout.ts';
import { attemptText, judged, judgePrompt, noRoom, tooLong } from '../../core/reward/self-judge.ts';
import type { AskedJudge, JudgeSample } from '../../core/reward/self-judge.ts';
import type { JudgeSpec } from '../../core/schema/reward.ts';
import { tokenizerConfigOf } from '../../engine/dialect/checkpoint-dialect.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { sampleTurn } from '../../engine/sample-turn.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { textOf } from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { isJudged } from '../training/judge-episodes.ts';
import type { JudgedEpisodes } from '../training/judge-episodes.ts';
import type { PolicyLease } from './policies.ts';
import { together } from './together.ts';

/** A judge calls no tools: it reads a message and answers. */
const NO_TOOLS = { tools: [] };

/**
 * What the policy says of a group's episodes, in order. A pure function of the request, the group and the weights: another
 * attempt samples the same tokens, to the bit.
 */
export async function judgeOwnGroup(
  lease: PolicyLease,
  request: OpenGroup,
  { tasks, episodes }: RolloutGroup,
  judge: AskedJudge,
  /** Unique among the sessions that the policy has. */
  session: string,
  signal: AbortSignal,
): Promise<JudgedEpisodes> {
  const dialect = lease.dialectFor(NO_TOOLS);
  const room = lease.config.maxPositions - judge.maxTokens;
  const said: JudgedEpisodes = episodes.map(() => null);
  await together(signal, [...episodes.entries()], async ([i, episode], shared) => {
    const task = tasks[episode.task]!;
    if (!isJudged(episode, task)) return;
    const promptTokens = readTokens(dialect, judge.rubric, attemptOf(task, episode.turns));
    if (promptTokens.length > room) {
      const least = readTokens(dialect, judge.rubric, attemptOf(task, []));
      said[i] = least.length > room ? noRoom() : tooLong();
      return;
    }
    const drawn = { place: request.firstTask + episode.task, sample: episode.sample };
    const samples: JudgeSample[] = [];
    await together(shared, [...Array(judge.samples).keys()], async (n, both) => {
      samples[n] = await sampleOf(lease, dialect, judge, promptTokens, {
        policySession: `${session}/${i}/${n}`,
        key: keyOfDraws(request, drawn, `judge-${n}`),
        signal: both,
      });
    });
    said[i] = judged(samples);
  });
  return said;
}

async function sampleOf(
  { policy, tokenizer }: PolicyLease,
  dialect: Dialect,
  { temperature, maxTokens }: AskedJudge,
  promptTokens: readonly number[],
  drawn: Pick<Parameters<typeof sampleTurn>[0], 'policySession' | 'key' | 'signal'>,
): Promise<JudgeSample> {
  const sampling = { temperature, topK: 0, topP: 1 };
  try {
    const { tokens, finish } = await sampleTurn(
      { policy, tokenizer, dialect, sampling, promptTokens, ...drawn },
      { tokens: [], mask: [] },
      maxTokens,
    );
    const said = finish === 'stop' ? dialect.parse(tokenizer.decode(tokens)) : null;
    return { text: said?.kind === 'answer' ? said.answer : null, tokens: tokens.length };
  } finally {
    policy.release(drawn.policySession);
  }
}

/** The task, and each turn as it was written with what came back. Token ids and times are left out. */
const attemptOf = ({ prompt }: Pick<GroupTask, 'prompt'>, turns: Episode['turns']): Json => ({
  task: prompt,
  turns: turns.map(({ text, observation }) => ({
    wrote: text,
    ...(observation && { result: observation.text }),
  })),
});

function readTokens(dialect: Dialect, rubric: string, attempt: Json): number[] {
  const data = attemptText(attempt);
  const mark = createHash('sha256').update(data).digest('hex').slice(0, 16);
  return dialect.promptTokens([{ role: 'user', content: judgePrompt(rubric, data, mark) }]);
}

/**
 * Throws GradusError('spec', 'invalid') where a model holds no more than the rubric and what the judge may say: then no
 * episode could be judged.
 */
export function assertJudgeFits(
  files: ModelFiles,
  { maxPositions }: Pick<ModelConfig, 'maxPositions'>,
  { rubric, maxTokens }: JudgeSpec,
): void {
  const tokenizer = Tokenizer.fromJson(textOf(files, 'tokenizer.json'));
  const dialect = openDialect(tokenizer, tokenizerConfigOf(files), []);
  const least = readTokens(dialect, rubric, attemptOf({ prompt: '' }, [])).length;
  if (least + maxTokens < maxPositions) return;
  throw new GradusError(
    'spec',
    'invalid',
    `reward.judge: its rubric, with the instructions around it, takes ${least} tokens, what the judge may say ${maxTokens}, and the model holds ${maxPositions}, so no transcript fits. Raise model.maxPositions well above ${least + maxTokens}, lower reward.judge.maxTokens, or shorten reward.judge.rubric`,
  );
}
