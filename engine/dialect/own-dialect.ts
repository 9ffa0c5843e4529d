import { z } from 'zod';
import type { Action, ToolCall } from '../../core/episode/episode.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { DialectExtension } from '../../core/extensions/extension.ts';
import { extensionOf } from '../../core/extensions/registry.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { ChatMessage, Dialect, ToolDescription, WrittenTurn } from './contract.ts';
import { Guard } from './guard.ts';
import { tooManyCalls } from './malformed.ts';
import { withoutEnd } from './turn-end.ts';
import { assertOneAction, assertPlain, readBack, turnTokensOf, unwritable } from './written-turn.ts';

/** Text of the dialect itself, in which special tokens are tokens; or text of others, in which none is one. */
export type Piece = string | { text: string };

/** What a dialect speaks of, and how the spec wants it. */
export interface DialectContext<Options = unknown> {
  tools: readonly ToolDescription[];
  options: Options;
}

/**
 * How prompts, calls and results are written, by a module of a project. A spec names it: `{"name": "own", "own": {"name": …,
 * "options": {…}}}`. It is pure, and writes text: Gradus makes tokens of it, and keeps texts of others from being tags.
 */
export interface OwnDialect<Options extends z.ZodObject = z.ZodObject> extends DialectExtension<Options> {
  /** Tokens of the vocabulary at which a turn is over; the first one is written behind turns. */
  turnEnds(context: DialectContext<z.output<Options>>): readonly string[];
  /** What the policy reads before its first turn, the opening of that turn included. */
  prompt(messages: readonly ChatMessage[], context: DialectContext<z.output<Options>>): readonly Piece[];
  /** What lies between a turn and the next one, whose opening is included: results of tools, or what a user says. */
  between(
    messages: readonly ChatMessage[],
    context: DialectContext<z.output<Options>> & { turn: string },
  ): readonly Piece[];
  /**
   * What a turn, without the token that ended it, asks for: several calls, too, where it has them, however many the spec allows.
   * What does not parse is `malformed`, with a reason.
   */
  parse(turn: string, context: DialectContext<z.output<Options>>): Action;
  /** A turn with a call or an answer, which `parse` reads back, without its end; null where it cannot be said. */
  write(
    turn: Pick<WrittenTurn, 'think' | 'call' | 'answer'>,
    context: DialectContext<z.output<Options>>,
  ): readonly Piece[] | null;
  /** A demonstrated turn with several calls, as `write` has one with a call. Without it the dialect has no such turns. */
  writeCalls?(
    turn: Pick<WrittenTurn, 'think'> & { calls: readonly ToolCall[] },
    context: DialectContext<z.output<Options>>,
  ): readonly Piece[] | null;
  /** For turns that end with text: whether one is over, which stays true for whatever follows. */
  isOver?(text: string, context: DialectContext<z.output<Options>>): boolean;
}

/** The default export of a module that brings a dialect. */
export const defineDialect = <Options extends z.ZodObject>(
  dialect: Omit<OwnDialect<Options>, 'extends'>,
): OwnDialect<Options> => ({ ...dialect, extends: 'dialect' });

const pieces = z.array(z.union([z.string(), z.strictObject({ text: z.string() })]));
const call = z.strictObject({ name: z.string(), arguments: z.json() });
const action = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('call'), call }),
  z.strictObject({ kind: z.literal('calls'), calls: z.array(call).min(2) }),
  z.strictObject({ kind: z.literal('answer'), answer: z.string() }),
  z.strictObject({ kind: z.literal('malformed'), reason: z.string().min(1) }),
]);

/**
 * The dialect of a project, as those of Gradus are. Throws GradusError('spec', 'extension') for one that is not known
 * here, and GradusError('policy', 'dialect') where what it gives is none of what it should.
 */
export function ownDialect(
  tokenizer: Tokenizer,
  named: { name: string; options: unknown } | undefined,
  tools: readonly ToolDescription[],
): Dialect {
  if (named === undefined)
    throw new GradusError('policy', 'dialect', 'a dialect of the project has no name: give dialect.own.name');
  const own = extensionOf('dialect', named.name) as OwnDialect;
  const context = { tools, options: own.options.parse(named.options) };
  const guard = new Guard(tokenizer);
  const broken = (why: string, cause?: unknown): GradusError =>
    new GradusError('policy', 'dialect', `the dialect "${own.name}" of the project cannot be used: ${why}`, {
      cause,
    });
  function given<T>(what: string, schema: z.ZodType<T>, call: () => unknown): T {
    let value: unknown;
    try {
      value = call();
    } catch (error) {
      throw broken(`its ${what}() threw: ${messageOf(error)}`, error);
    }
    const { success, data, error } = schema.safeParse(value);
    if (success) return data;
    const { path, message } = error.issues[0]!;
    throw broken(`its ${what}() gave ${path.join('.') || 'something else'}: ${message}`);
  }
  const turnEnds = given('turnEnds', z.array(z.string().min(1)), () => own.turnEnds(context));
  const strange = turnEnds.find((token) => !tokenizer.has(token));
  if (strange !== undefined) throw broken(`its turnEnds() names ${strange}, which the tokenizer has not`);
  if (turnEnds.length === 0 && !own.isOver)
    throw broken('nothing ends its turns: give turnEnds() a token, or add isOver()');
  const isOver = (text: string): boolean =>
    own.isOver !== undefined && given('isOver', z.boolean(), () => own.isOver!(text, context));
  const encoded = (all: z.output<typeof pieces>): number[] =>
    guard.encode(all.map((piece) => (typeof piece === 'string' ? piece : guard.shield(piece.text))).join(''));
  const parse = (text: string, mostCalls = 1): Action => {
    const read = given('parse', action, () => own.parse(withoutEnd(text, turnEnds), context));
    return read.kind === 'calls' && read.calls.length > mostCalls ? tooManyCalls(mostCalls) : read;
  };
  const ended = (text: string): string =>
    turnEnds.some((end) => text.endsWith(end)) || isOver(text) ? text : text + (turnEnds[0] ?? '');
  const written = ({ calls, ...turn }: WrittenTurn) => {
    if (!calls) return given('write', pieces.nullable(), () => own.write(turn, context));
    if (!own.writeCalls) return null;
    return given('writeCalls', pieces.nullable(), () => own.writeCalls!({ ...turn, calls }, context));
  };
  const between = (messages: readonly ChatMessage[], turn: string): number[] =>
    encoded(given('between', pieces, () => own.between(messages, { ...context, turn })));
  const turnText = (turn: WrittenTurn): string => {
    assertOneAction(turn);
    if (turn.raw !== undefined) return ended(turn.raw);
    const all = written(turn);
    if (all === null && turn.calls && !own.writeCalls)
      throw unwritable(
        `The dialect ${own.name} writes one call a turn: write a turn for each of the ${turn.calls.length} calls, or add writeCalls() to it.`,
      );
    if (all === null)
      throw unwritable(`The dialect ${own.name} cannot write ${JSON.stringify(turn)}: take another dialect.`);
    const text = all
      .map((piece) => (typeof piece === 'string' ? piece : assertPlain(piece.text, guard, NOTHING)))
      .join('');
    return readBack(turn, ended(text), parse);
  };
  return {
    name: 'own',
    promptTokens: (messages) => encoded(given('prompt', pieces, () => own.prompt(messages, context))),
    observationTokens: ({ text }, turn) => between([{ role: 'tool', content: text }], turn),
    messageTokens: between,
    stopTokens: turnEnds.map((token) => tokenizer.idOf(token)),
    ...(own.isOver && { isOver }),
    parse,
    canWrite: (turn) => turn.raw !== undefined || written(turn) !== null,
    turnText,
    turnTokens: (turn) => turnTokensOf(tokenizer, turnText(turn)),
  };
}

/** Tags of its own are the dialect's to keep apart. */
const NOTHING = /(?!)/u;
