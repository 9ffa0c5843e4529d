import type { ChatMessage } from '../engine/dialect/contract.ts';
import { Problem } from './problem.ts';

/**
 * The messages with the results of each turn in the order of its calls, whatever order they came in: by the id of the call,
 * and without one in turn. Throws Problem(400), as OpenAI and Anthropic answer, for a result of a call that the turn before
 * has not made, or that another result has answered.
 */
export function resultsInOrder(messages: readonly ChatMessage[]): ChatMessage[] {
  const ordered: ChatMessage[] = [];
  for (let at = 0; at < messages.length;) {
    const results = messages.slice(at).findIndex(({ role }) => role !== 'tool');
    const end = results < 0 ? messages.length : at + results;
    if (end > at) ordered.push(...byCall(messages[at - 1]?.tool_calls ?? [], messages.slice(at, end)));
    if (end < messages.length) ordered.push(messages[end]!);
    at = end + 1;
  }
  return ordered;
}

function byCall(
  calls: NonNullable<ChatMessage['tool_calls']>,
  results: readonly ChatMessage[],
): ChatMessage[] {
  const found: (ChatMessage | undefined)[] = calls.map(() => undefined);
  const [named, unnamed] = [true, false].map((has) =>
    results.filter((one) => (one.tool_call_id !== undefined) === has),
  );
  for (const result of [...named!, ...unnamed!]) {
    const { tool_call_id: id } = result;
    const at = calls.findIndex((call, i) => !found[i] && (id === undefined || call.id === id));
    if (at < 0) throw stranger(id, calls);
    found[at] = result;
  }
  return found.filter((one) => one !== undefined);
}

function stranger(id: string | undefined, calls: NonNullable<ChatMessage['tool_calls']>): Problem {
  const ids = calls.map((call) => call.id ?? '').join(', ');
  return new Problem(
    400,
    'invalid_request',
    `A result of a tool answers ${id === undefined ? 'no call' : `the call ${JSON.stringify(id)}`}, and the turn before it ${
      ids === '' ? 'calls nothing' : `has made ${ids}`
    }: send one result for each call, with the id of that call`,
    'messages',
  );
}
