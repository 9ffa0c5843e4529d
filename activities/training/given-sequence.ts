import { GradusError } from '../../core/errors.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { invalidData } from '../../core/json/lines.ts';
import type { GivenLine, GivenMessage, GivenTool } from '../../core/schema/given-line.ts';
import { assertOneCall, callsOf } from '../../engine/dialect/written-turn.ts';
import type { ChatMessage, Dialect, WrittenTurn } from '../../engine/dialect/contract.ts';
import { writtenSequence } from './written-sequence.ts';

// Messages that a person gives, as the tokens of an episode.

/** A line and where it is from. */
export interface PlacedLine {
  /** File and line. */
  where: string;
  line: GivenLine;
}

/** What of a dialect writes an episode. */
type Writer = Pick<
  Dialect,
  'name' | 'promptTokens' | 'turnTokens' | 'turnText' | 'observationTokens' | 'messageTokens'
>;

/** Binds a model's dialect to the tools of a line, or to those of the stage's environment. */
export type WriterFor = (tools: readonly GivenTool[] | undefined) => Writer;

/** Writes nothing: of a model whose tokenizer is still to be made only the order of messages and their calls can be checked. */
export const ORDER_ALONE: Writer = {
  name: 'gradus',
  promptTokens: () => [],
  turnTokens: (turn) => {
    assertOneCall('gradus', turn);
    return [];
  },
  turnText: () => '',
  observationTokens: () => [],
  messageTokens: () => [],
};

/** What one sequence is made of. */
interface GivenEpisode {
  where: string;
  messages: readonly GivenMessage[];
  tools?: GivenTool[] | undefined;
  /** Of its tokens that are trained. */
  weight: number;
}

/**
 * An episode as tokens: what the assistant said is masked in, unless its message says otherwise. `room` is how many the
 * model holds. Throws GradusError('spec', 'invalid-data').
 */
export function givenSequence(
  { where, messages, tools, weight }: GivenEpisode,
  writerFor: WriterFor,
  room = Infinity,
): TrainingSample {
  const dialect = writerFor(tools);
  const first = messages.findIndex(({ role }) => role === 'assistant');
  if (first === 0) throw invalidData(where, 'begins with what the assistant said: a prompt is missing');
  const { sequence, append } = writtenSequence(weight);
  try {
    append(dialect.promptTokens(messages.slice(0, first).map(chatMessage)), 0);
    const rest = messages.slice(first);
    for (let i = 0; i < rest.length;) {
      const message = rest[i]!;
      const turn = writtenTurn(message, where);
      append(dialect.turnTokens(turn), message.trained ? 1 : 0);
      const results = rest.slice(i + 1).findIndex(({ role }) => role !== 'tool');
      const end = results < 0 ? rest.length : i + 1 + results;
      const observed = rest.slice(i + 1, end);
      const calls = callsOf(turn);
      if (calls.length === 0 && observed.length > 0)
        throw invalidData(where, 'has a message of role tool after one without a call');
      if (calls.length === 1 && observed.length === 0 && end < rest.length)
        throw invalidData(where, `goes on after a call of ${calls[0]!.name} without a message of role tool`);
      if (calls.length > 1 && observed.length < calls.length && end < rest.length)
        throw invalidData(
          where,
          `goes on after ${calls.length} calls in one message with ${observed.length} of their results: give each call a message of role tool`,
        );
      append(readAfter(dialect, turn, observed), 0);
      if (end < rest.length && calls.length === 0)
        throw invalidData(
          where,
          `goes on after an answer with a message of role ${rest[end]!.role}: an episode ends with its answer, so write each exchange as a line of its own`,
        );
      if (end < rest.length && rest[end]!.role !== 'assistant')
        throw invalidData(where, `has a message of role ${rest[end]!.role} where the assistant is to go on`);
      i = end;
    }
  } catch (error) {
    if (!(error instanceof GradusError) || error.type === 'invalid-data') throw error;
    throw invalidData(where, `cannot be written in the dialect ${dialect.name}: ${error.message}`, error);
  }
  const { length } = sequence.tokens;
  if (length > room)
    throw invalidData(where, `takes ${length} tokens, and the model holds ${room}: leave it out`);
  return sequence;
}

/** What is read after a turn; a last one with several calls may lack results, and nobody reads the others. */
function readAfter(
  dialect: Pick<Writer, 'observationTokens' | 'messageTokens' | 'turnText'>,
  turn: WrittenTurn,
  results: readonly GivenMessage[],
): number[] {
  const { calls } = turn;
  if (results.length < (calls?.length ?? 1)) return [];
  if (!calls)
    return dialect.observationTokens(
      { text: results.map(({ content }) => content).join('\n') },
      dialect.turnText(turn),
    );
  const ordered = results.toSorted((a, b) => a.answers! - b.answers!);
  return dialect.messageTokens(
    ordered.map(({ content }) => ({ role: 'tool', content })),
    dialect.turnText(turn),
  );
}

function chatMessage({ role, content }: GivenMessage): ChatMessage {
  return { role, content };
}

/** A turn is its calls, or one answer. */
function writtenTurn(
  { role, content, reasoning_content: thought, call, calls }: GivenMessage,
  where: string,
): WrittenTurn {
  if (role !== 'assistant') throw invalidData(where, `has a message of role ${role} in the place of a turn`);
  const made = call ? { call } : calls && { calls };
  if (made && content.trim() !== '' && thought === undefined) return { think: content, ...made };
  return { ...(thought !== undefined && { think: thought }), ...(made ?? { answer: content }) };
}
