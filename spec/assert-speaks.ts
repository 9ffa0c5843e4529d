import { GradusError } from '../core/errors.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import type { DialectSpec } from '../core/schema/dialect.ts';
import { tokenizerConfigOf, withDialect } from '../engine/dialect/checkpoint-dialect.ts';
import { openDialect } from '../engine/dialect/open-dialect.ts';
import { Tokenizer } from '../engine/tokenizer/tokenizer.ts';
import { environmentOf } from '../environments/host/environment-of.ts';
import type { Environments } from '../environments/host/environment-of.ts';
import { textOf } from '../store/training/checkpoints.ts';
import type { ModelFiles } from '../store/training/checkpoints.ts';

/**
 * Throws GradusError('spec', 'invalid') unless a checkpoint can speak its dialect with the tools of every environment
 * that a run uses, so that it is found out before anything is spent.
 */
export function assertSpeaks(
  files: ModelFiles,
  { stages, evaluation }: Pick<CurriculumSpec, 'stages' | 'evaluation'>,
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
      openDialect(
        tokenizer,
        config,
        tools.map(({ described }) => described),
      ).promptTokens([{ role: 'user', content: 'task' }]);
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
