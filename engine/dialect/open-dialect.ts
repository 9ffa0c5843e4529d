import { GradusError, messageOf } from '../../core/errors.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import { chatTemplateOf, dialectOfCheckpoint, namedSpecialTokens } from './checkpoint-dialect.ts';
import type { TokenizerConfig } from './checkpoint-dialect.ts';
import type { Dialect, ToolDescription } from './contract.ts';
import { deepseekDialect } from './deepseek.ts';
import { gradusDialect } from './gradus/dialect.ts';
import { Guard } from './guard.ts';
import { hermesDialect } from './hermes.ts';
import { llama3Dialect } from './llama3.ts';
import { mistralDialect } from './mistral.ts';
import { ownDialect } from './own-dialect.ts';
import { pythonicDialect } from './pythonic.ts';
import { retool } from './tags/retool.ts';
import { searchR1 } from './tags/search-r1.ts';
import { tagDialect } from './tags/tag-dialect.ts';
import { ChatTemplate } from './template/chat-template.ts';
import { TemplateFrame } from './template/template-frame.ts';

/** Tokens that end an assistant's turn in the families that are known; the first that a tokenizer has is written. */
const TURN_ENDS = ['<|im_end|>', '<|eot_id|>', '<|eom_id|>', '<|endoftext|>', '<|end_of_text|>', '</s>'];

/**
 * The dialect that a checkpoint speaks with an environment's tools.
 * Throws GradusError('policy', 'dialect' | 'chat-template') where the checkpoint cannot speak it, and
 * GradusError('spec', 'invalid') where the tools do not fit it.
 */
export function openDialect(
  tokenizer: Tokenizer,
  config: TokenizerConfig,
  tools: readonly ToolDescription[],
): Dialect {
  try {
    return dialectFor(tokenizer, config, tools);
  } catch (cause) {
    if (cause instanceof GradusError) throw cause;
    // A pure function of the checkpoint's files fails again however often it is tried.
    throw new GradusError(
      'policy',
      'dialect',
      `The checkpoint's tokenizer files cannot be used (${messageOf(cause)}): take the ones that were saved with the model, or choose another model.dialect.`,
      { cause },
    );
  }
}

function dialectFor(
  tokenizer: Tokenizer,
  config: TokenizerConfig,
  tools: readonly ToolDescription[],
): Dialect {
  const spec = dialectOfCheckpoint(tokenizer, config);
  if (spec.name === 'gradus') return gradusDialect(tokenizer, spec.describeTools ? tools : []);
  if (spec.name === 'own') return ownDialect(tokenizer, spec.own, tools);
  const named = namedSpecialTokens(config);
  const turnEnds = [...new Set([...TURN_ENDS, named['eos_token'] ?? ''])].filter(
    (token) => token !== '' && tokenizer.has(token),
  );
  const guard = new Guard(tokenizer);
  const source = chatTemplateOf(config, tools.length > 0);
  const template = source === undefined ? undefined : new ChatTemplate(source, named, spec.date);
  const variables = spec.thinking === undefined ? {} : { enable_thinking: spec.thinking };
  const frame = (described: readonly ToolDescription[]): TemplateFrame => {
    if (!template) {
      throw new GradusError(
        'policy',
        'dialect',
        `${spec.name} needs a chat template, and the checkpoint has none: add chat_template to its tokenizer_config.json, or choose search-r1 or retool`,
      );
    }
    return new TemplateFrame(template, guard, described, turnEnds, variables, {
      argumentsAsText: spec.name === 'deepseek',
    });
  };
  if (spec.name === 'hermes') return hermesDialect(tokenizer, guard, frame(tools), turnEnds, spec);
  if (spec.name === 'llama3') return llama3Dialect(tokenizer, guard, frame(tools), turnEnds);
  if (spec.name === 'pythonic') return pythonicDialect(tokenizer, guard, frame(tools), turnEnds);
  if (spec.name === 'deepseek') return deepseekDialect(tokenizer, guard, frame(tools), turnEnds);
  if (spec.name === 'mistral') return mistralDialect(tokenizer, guard, frame(tools), turnEnds);
  const conventions = spec.name === 'retool' ? retool : searchR1;
  // Their instructions describe the tool; the template's own block for tools would teach another way to call.
  return tagDialect(conventions, tokenizer, guard, template && frame([]), turnEnds, tools, spec);
}
