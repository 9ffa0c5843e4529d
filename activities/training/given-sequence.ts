import { GradusError } from '../../core/errors.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { invalidData } from '../../core/json/lines.ts';
import type { GivenLine, GivenMessage, GivenTool } from '../../core/schema/given-line.ts';
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
type Writer = Pick<Dialect, 'name' | 'promptTokens' | 'turnTokens' | 'turnText' | 'observationTokens'>;

/** Binds a model's dialect to the tools of a line, or to those of the stage's environment. */
export type WriterFor = (tools: readonly GivenTool[] | undefined) => Writer;

/** Writes nothing: of a model whose tokenizer is still to be made only the order of messages can be checked. */
export const ORDER_ALONE: Writer = {
  name: 'gradus',
  promptTokens: () => [],
  turnTokens: () => [],
  turnText: () => '',
  observationTokens: () => [],
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
      const observed = rest.slice(i + 1, end).map(({ content }) => content);
      if (turn.call !== undefined && observed.length === 0 && end < rest.length)
        throw invalidData(where, `goes on after a call of ${turn.call.name} without a message of role tool`);
      if (observed.length > 0) {
        if (turn.call === undefined)
          throw invalidData(where, 'has a message of role tool after one without a call');
        append(dialect.observationTokens({ text: observed.join('\n') }, dialect.turnText(turn)), 0);
      }
      if (end < rest.length && turn.call === undefined)
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

function chatMessage({ role, content }: GivenMessage): ChatMessage {
  return { role, content };
}

/** A turn is one call, or one answer. */
function writtenTurn(
  { role, content, reasoning_content: thought, call }: GivenMessage,
  where: string,
): WrittenTurn {
  if (role !== 'assistant') throw invalidData(where, `has a message of role ${role} in the place of a turn`);
  if (call && content.trim() !== '' && thought === undefined) return { think: content, call };
  return { ...(thought !== undefined && { think: thought }), ...(call ? { call } : { answer: content }) };
}
