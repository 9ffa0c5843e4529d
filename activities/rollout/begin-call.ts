import { uniform, uniformInt } from '../../core/random.ts';
import type { RandomKey } from '../../core/random.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import type { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';

/**
 * ε-greedy choice of a tool: with a probability, the first tokens of a turn that calls a tool, up to its name, which is
 * drawn with equal chances; else none. None either where a dialect's calls do not say the name of their tool.
 */
export function beginCall(
  { dialect, tokenizer }: { dialect: Dialect; tokenizer: Tokenizer },
  tools: readonly Pick<ToolFacts, 'name'>[],
  probability: number,
  key: RandomKey,
): number[] {
  if (tools.length === 0 || uniform(key, 0) >= probability) return [];
  const { name } = tools[uniformInt(key, 1, tools.length)]!;
  const turn = { call: { name, arguments: {} } };
  if (!dialect.canWrite(turn)) return [];
  const text = dialect.turnText(turn);
  const quoted = JSON.stringify(name);
  const at = text.indexOf(quoted);
  return at < 0 ? [] : tokenizer.encode(text.slice(0, at + quoted.length));
}
