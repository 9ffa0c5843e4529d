import { tokenizerConfigOf } from '../../engine/dialect/checkpoint-dialect.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { modelConfigOf } from '../../engine/hf-model-config.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { jsonOf, textOf } from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import type { PolicyLease, Speaking } from './policies.ts';

/** Tokenizer, shape and dialects of a checkpoint, made of its small files. */
export class Speakers {
  private tokenizer: { json: string; tokenizer: Tokenizer } | undefined;

  of(files: ModelFiles): Pick<PolicyLease, 'tokenizer' | 'config' | 'dialectFor'> {
    const config = modelConfigOf(jsonOf(files, 'config.json'), jsonOf(files, 'tokenizer.json'));
    const tokenizer = this.tokenizerOf(textOf(files, 'tokenizer.json'));
    const tokenizerConfig = tokenizerConfigOf(files);
    const dialects = new WeakMap<object, Dialect>();
    const dialectFor = (environment: Speaking): Dialect => {
      const known = dialects.get(environment);
      if (known) return known;
      const dialect = openDialect(
        tokenizer,
        tokenizerConfig,
        environment.tools.map(({ described }) => described),
      );
      dialects.set(environment, dialect);
      return dialect;
    };
    return { tokenizer, config, dialectFor };
  }

  /** A run trains weights and not the tokenizer, and one of 150,000 tokens takes a second to open. */
  private tokenizerOf(json: string): Tokenizer {
    if (this.tokenizer?.json !== json) this.tokenizer = { json, tokenizer: Tokenizer.fromJson(json) };
    return this.tokenizer.tokenizer;
  }
}
