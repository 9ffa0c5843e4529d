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
  const calling = (tool: string) => ({ call: { name: tool, arguments: {} } });
  const [turn, other] = [calling(name), calling(name.startsWith('x') ? 'y' : 'x')];
  if (!dialect.canWrite(turn) || !dialect.canWrite(other)) return [];
  const text = dialect.turnText(turn);
  // From its opening quote on, where the name stands: a tool may be called as a key of the call is.
  const at = alikeUpTo(text, dialect.turnText(other)) - 1;
  const quoted = JSON.stringify(name);
  return text.startsWith(quoted, at) ? tokenizer.encode(text.slice(0, at + quoted.length)) : [];
}

function alikeUpTo(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}
