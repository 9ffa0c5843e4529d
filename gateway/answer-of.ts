import type { ToolCall } from '../core/episode/episode.ts';
import type { ChatMessage, Dialect, SpokenTurn } from '../engine/dialect/contract.ts';

/**
 * What an agent is told that the policy said: ids of calls follow from the turn's. A turn that does not parse is told as
 * the text that it is, without the token that ended it, and the agent deals with it as with any model's.
 */
export function answerOf(
  dialect: Dialect,
  { text, plain }: { text: string; plain: string },
  id: string,
): ChatMessage {
  const said = readTurn(dialect, text) ?? { thought: '', text: plain, calls: [] };
  const { thought, text: content, calls } = said;
  return {
    role: 'assistant',
    content,
    ...(thought !== '' && { reasoning_content: thought }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call: ToolCall, i) => ({
        type: 'function' as const,
        id: `call_${id.slice(0, 24)}${i}`,
        function: { name: call.name, arguments: call.arguments },
      })),
    }),
  };
}

function readTurn(dialect: Dialect, text: string): SpokenTurn | undefined {
  if (dialect.read) return dialect.read(text);
  const action = dialect.parse(text, Infinity);
  if (action.kind === 'malformed') return undefined;
  const thought = /<think>(.*?)<\/think>/su.exec(text)?.[1]?.trim() ?? '';
  if (action.kind === 'answer') return { thought, text: action.answer, calls: [] };
  return { thought, text: '', calls: action.kind === 'call' ? [action.call] : action.calls };
}
