import { GradusError } from '../core/errors.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import { refusalOfCalls } from '../core/schema/dialect.ts';
import type { DialectSpec } from '../core/schema/dialect.ts';
import type { EvaluateSpec } from '../core/schema/evaluate.ts';
import { tokenizerConfigOf, withDialect } from '../engine/dialect/checkpoint-dialect.ts';
import type { ChatMessage, Dialect } from '../engine/dialect/contract.ts';
import { openDialect } from '../engine/dialect/open-dialect.ts';
import { NO_STOP_TOKEN } from '../engine/sample-turn.ts';
import { Tokenizer } from '../engine/tokenizer/tokenizer.ts';
import { environmentOf } from '../environments/host/environment-of.ts';
import type { Environments } from '../environments/host/environment-of.ts';
import { textOf } from '../store/training/checkpoints.ts';
import type { ModelFiles } from '../store/training/checkpoints.ts';

/** What is read behind a turn with two calls. */
const TWO_RESULTS = ['first gradus result', 'second gradus result'].map(
  (content) => ({ role: 'tool', content }) satisfies ChatMessage,
);

/**
 * Throws GradusError('spec', 'invalid') unless a checkpoint can speak its dialect with the tools of every environment
 * that a run uses, so that it is found out before anything is spent.
 */
export function assertSpeaks(
  files: ModelFiles,
  {
    stages,
    evaluation,
    sampling,
    beams,
  }: Pick<CurriculumSpec, 'stages' | 'evaluation' | 'sampling'> & Pick<EvaluateSpec, 'beams'>,
  dialect: DialectSpec | undefined,
  environments: Environments,
  written = { what: 'the curriculum spec', at: 'model.dialect' },
): void {
  const tokenizer = Tokenizer.fromJson(textOf(files, 'tokenizer.json'));
  const config = tokenizerConfigOf(dialect ? new Map([...files, ...withDialect(files, dialect)]) : files);
  const arms = [...stages, evaluation].flatMap((section) => section.arms);
  for (const name of new Set(arms.map(({ environment }) => environment))) {
    const { tools } = environmentOf(environments, name);
    try {
      const spoken = openDialect(
        tokenizer,
        config,
        tools.map(({ described }) => described),
      );
      spoken.promptTokens([{ role: 'user', content: 'task' }]);
      const refused = refusalOfCalls(spoken.name, sampling);
      if (refused) throw new GradusError('spec', 'invalid', `sampling.maxParallelCalls: ${refused}`);
      if (beams && spoken.isOver) throw new GradusError('spec', 'invalid', `beams: ${NO_STOP_TOKEN}`);
      if ((sampling.maxParallelCalls ?? 1) > 1) assertTellsBoth(tokenizer, spoken);
    } catch (cause) {
      if (!(cause instanceof GradusError)) throw cause;
      throw new GradusError(
        'spec',
        'invalid',
        `${written.what} was refused before anything was spent.\n  ${written.at}: with the tools of ${name}: ${cause.message}`,
        { cause },
      );
    }
  }
}

/** A template that passes over one of two results would have the policy go on as if its call had brought nothing. */
function assertTellsBoth(tokenizer: Tokenizer, spoken: Dialect): void {
  const read = tokenizer.decode(spoken.messageTokens(TWO_RESULTS, ''));
  if (TWO_RESULTS.every(({ content }) => read.includes(content))) return;
  throw new GradusError(
    'policy',
    'chat-template',
    'what is read behind two calls of a turn leaves out a result: leave out sampling.maxParallelCalls, or fix the chat template',
  );
}
