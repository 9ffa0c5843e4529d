import { tokenizerConfigOf } from '../../engine/dialect/checkpoint-dialect.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { textOf } from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import type { Speaking } from '../rollout/policies.ts';

/** What a checkpoint speaks with an environment's tools. */
export function dialectsOf(files: ModelFiles): (environment: Speaking) => Dialect {
  const tokenizer = Tokenizer.fromJson(textOf(files, 'tokenizer.json'));
  const config = tokenizerConfigOf(files);
  return ({ tools }) =>
    openDialect(
      tokenizer,
      config,
      tools.map(({ described }) => described),
    );
}
