import { GradusError } from '../../core/errors.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import { chatTemplateOf, dialectOfCheckpoint } from './checkpoint-dialect.ts';
import type { TokenizerConfig } from './checkpoint-dialect.ts';
import { DIALECTS } from '../../core/names.ts';
import type { DialectName } from '../../core/names.ts';
import type { ToolDescription } from './contract.ts';
import { SPECIAL_TOKENS } from './gradus/special-tokens.ts';
import { openDialect } from './open-dialect.ts';

/** A dialect, and what keeps a model's files from speaking it; null where nothing does. */
interface Spoken {
  name: DialectName;
  missing: string | null;
}

export interface DialectsSpoken {
  /** What it speaks where a spec does not say; null where the spec has to. */
  byItself: DialectName | null;
  all: Spoken[];
}

/** What every dialect can call: one tool with one text. */
const TOOL: ToolDescription = {
  name: 'tool',
  description: 'A tool.',
  parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
};

/** Which dialects a tokenizer and its chat template can speak: each is opened, and writes a prompt, a call and its result. */
export function dialectsSpoken(tokenizer: Tokenizer, config: TokenizerConfig): DialectsSpoken {
  const all = DIALECTS.map((name) => ({ name, missing: missingFor(name, tokenizer, config) }));
  return { byItself: unlessUnsaid(() => dialectOfCheckpoint(tokenizer, config).name), all };
}

function missingFor(name: DialectName, tokenizer: Tokenizer, config: TokenizerConfig): string | null {
  if (name === 'gradus') {
    const lacking = SPECIAL_TOKENS.filter((token) => !tokenizer.has(token));
    return lacking.length === 0 ? null : `its tokenizer has no ${lacking.join(', ')}`;
  }
  const template = chatTemplateOf(config, true);
  if (name === 'hermes' && template?.includes('<tool_call>') === false)
    return 'its chat template writes no <tool_call>';
  if (name === 'mistral' && template?.includes('[TOOL_CALLS]') === false)
    return 'its chat template writes no [TOOL_CALLS]';
  if (name === 'deepseek' && template?.includes('<｜tool▁call▁begin｜>') === false)
    return 'its chat template writes no <｜tool▁call▁begin｜>';
  const ofLlama = name === 'llama3' || name === 'pythonic';
  if (ofLlama && template !== undefined && !/\bipython\b/u.test(template))
    return 'its chat template knows no role ipython';
  const recorded = config['gradus_dialect'] as { name?: string } | undefined;
  const spoken = {
    ...config,
    gradus_dialect: recorded?.name === name ? recorded : { name },
  } as TokenizerConfig;
  try {
    const dialect = openDialect(tokenizer, spoken, [TOOL]);
    dialect.promptTokens([{ role: 'user', content: 'task' }]);
    const call = { call: { name: TOOL.name, arguments: { text: 'words' } } };
    dialect.observationTokens({ text: 'result' }, dialect.turnText(call));
    return null;
  } catch (error) {
    if (error instanceof GradusError) return error.message;
    throw error;
  }
}

/** Null where the files do not say it. */
function unlessUnsaid(say: () => DialectName): DialectName | null {
  try {
    return say();
  } catch (error) {
    if (error instanceof GradusError && error.type === 'dialect') return null;
    throw error;
  }
}
