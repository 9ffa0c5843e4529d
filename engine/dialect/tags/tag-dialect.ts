import { GradusError } from '../../../core/errors.ts';
import type { Action } from '../../../core/episode/episode.ts';
import type { DialectSpec } from '../../../core/schema/dialect.ts';
import type { Tokenizer } from '../../tokenizer/tokenizer.ts';
import type { DialectName } from '../../../core/names.ts';
import type { ChatMessage, Dialect, ToolDescription, WrittenTurn } from '../contract.ts';
import type { Guard } from '../guard.ts';
import { malformed } from '../malformed.ts';
import type { TemplateFrame } from '../template/template-frame.ts';
import { withoutEnd } from '../turn-end.ts';
import { assertOneAction, assertOneCall, assertPlain, readBack, turnTokensOf } from '../written-turn.ts';
import { isTagTurnOver, parseTagTurn } from './tag-turn.ts';
import type { Tags } from './tag-turn.ts';

/** What tells one dialect of this kind from another. */
export interface TagConventions {
  name: DialectName;
  tags: Tags;
  /** What the policy is told before the task, with the tool's description in it. */
  instructions(tool: ToolDescription): string;
  /** The argument and the answer as they stand between the tags, and back; empty where there is nothing. */
  writeCall(argument: string): string;
  readCall(content: string): string;
  writeAnswer(answer: string): string;
  readAnswer(content: string): string;
}

/**
 * Dialects in which everything happens inside one turn of the assistant: the policy writes text between tags, sampling
 * stops there, and the result is written between other tags right after it. The tags are plain text, so a turn is
 * over when its text says so. One tool can be called, with one text argument.
 */
export function tagDialect(
  conventions: TagConventions,
  tokenizer: Tokenizer,
  guard: Guard,
  frame: TemplateFrame | undefined,
  turnEnds: readonly string[],
  tools: readonly ToolDescription[],
  spec: Pick<DialectSpec, 'tool' | 'argument'>,
): Dialect {
  const { name, tags } = conventions;
  const { tool, argument } = mappedTool(name, tools, spec);
  const opened = frame?.opensThought ?? false;
  const spelled = new RegExp(`</?(?:${tags.call}|${tags.answer}|${tags.result}|think)>`, 'u');
  const instructed = (messages: readonly ChatMessage[]): ChatMessage[] => {
    const first = messages.findIndex(({ role }) => role === 'user');
    return messages.map((message, i) =>
      i === first
        ? { ...message, content: `${conventions.instructions(tool)}\n\n${message.content}` }
        : message,
    );
  };
  const argumentOf = ({ call }: WrittenTurn): string | undefined => {
    if (call?.name !== tool.name || typeof call.arguments !== 'object' || call.arguments === null)
      return undefined;
    const entries = Object.entries(call.arguments);
    const value = entries[0]?.[1];
    return entries.length === 1 && entries[0]![0] === argument && typeof value === 'string'
      ? value
      : undefined;
  };
  const parse = (text: string): Action => {
    const piece = parseTagTurn(withoutEnd(text, turnEnds), tags, opened);
    if (piece.kind === 'malformed') return piece;
    if (piece.kind === 'answer') {
      const answer = conventions.readAnswer(piece.content);
      return answer === '' ? malformed('empty answer') : { kind: 'answer', answer };
    }
    const value = conventions.readCall(piece.content);
    if (value === '') return malformed(`empty <${tags.call}>`);
    return { kind: 'call', call: { name: tool.name, arguments: { [argument]: value } } };
  };
  const turnText = (turn: WrittenTurn): string => {
    assertOneAction(turn);
    assertOneCall(name, turn);
    const { think, call, answer, raw } = turn;
    if (raw !== undefined) {
      return isTagTurnOver(raw, tags) || turnEnds.some((end) => raw.endsWith(end))
        ? raw
        : raw + (turnEnds[0] ?? '');
    }
    const plain = (text: string): string => assertPlain(text, guard, spelled);
    const thought =
      think === undefined
        ? opened
          ? '</think>\n'
          : ''
        : `${opened ? '' : '<think>'}${plain(think)}</think>\n`;
    if (!call) {
      const written = conventions.writeAnswer(plain(answer!));
      return readBack(turn, `${thought}<${tags.answer}>${written}</${tags.answer}>`, parse);
    }
    const value = argumentOf(turn);
    if (value === undefined) {
      throw new GradusError(
        'environment',
        'demonstration',
        `The dialect ${name} calls ${tool.name} with ${argument}, so it cannot write ${JSON.stringify(call)}: take another dialect, or demonstrate this tool alone.`,
      );
    }
    return readBack(
      turn,
      `${thought}<${tags.call}>${conventions.writeCall(plain(value))}</${tags.call}>`,
      parse,
    );
  };
  const observationTokens: Dialect['observationTokens'] = ({ text }, turn) => {
    // A tool must not be able to close its own tag.
    const harmless = text.replaceAll(new RegExp(`</?${tags.result}>`, 'gu'), (tag) => `&lt;${tag.slice(1)}`);
    const result = `<${tags.result}>${guard.shield(harmless)}</${tags.result}>`;
    // Whoever ended the message is answered in the next one, and opens another.
    return guard.encode(isEnded(turn) && frame ? frame.messageAfterTurn(result) : `\n\n${result}\n\n`);
  };
  const isEnded = (turn: string): boolean => turnEnds.some((end) => turn.endsWith(end));
  return {
    name,
    promptTokens: (messages) => {
      const whole = instructed(messages);
      if (frame) return frame.promptTokens(whole);
      return tokenizer.encodePlain(`${whole.map(({ content }) => content).join('\n\n')}\n\n`);
    },
    observationTokens,
    messageTokens: (messages, turn) => {
      const text = messages.map(({ content }) => content).join('\n\n');
      if (messages.every(({ role }) => role === 'tool')) return observationTokens({ text }, turn);
      if (!frame) return guard.encode(`\n\n${guard.shield(text)}\n\n`);
      const end = isEnded(turn) ? [] : turnEnds.slice(0, 1).map((token) => tokenizer.idOf(token));
      return [...end, ...frame.messageTokens(messages)];
    },
    stopTokens: turnEnds.map((token) => tokenizer.idOf(token)),
    isOver: (text) => isTagTurnOver(text, tags),
    parse,
    canWrite: (turn) => !turn.calls && (turn.call === undefined || argumentOf(turn) !== undefined),
    turnText,
    turnTokens: (turn) => turnTokensOf(tokenizer, turnText(turn)),
  };
}

/** The tool and the argument that a tag stands for: as the spec says, or the only one there is. */
function mappedTool(
  dialect: DialectName,
  tools: readonly ToolDescription[],
  { tool: wanted, argument: named }: Pick<DialectSpec, 'tool' | 'argument'>,
): { tool: ToolDescription; argument: string } {
  const names = tools.map(({ name }) => name).join(', ') || 'none';
  const tool =
    wanted === undefined
      ? tools.length === 1
        ? tools[0]
        : undefined
      : tools.find(({ name }) => name === wanted);
  if (!tool) {
    throw unmapped(
      wanted === undefined
        ? `${dialect} calls one tool: say which in model.dialect.tool (tools: ${names})`
        : `model.dialect.tool: no tool "${wanted}" (tools: ${names})`,
    );
  }
  const properties = (tool.parameters['properties'] ?? {}) as Record<string, { type?: string }>;
  const texts = Object.keys(properties).filter((key) => properties[key]!.type === 'string');
  const required = ((tool.parameters['required'] ?? []) as string[]).filter((key) => key !== named);
  const argument = named ?? (texts.length === 1 ? texts[0] : undefined);
  if (argument === undefined || !texts.includes(argument)) {
    throw unmapped(
      `${named === undefined ? 'say in model.dialect.argument which' : `model.dialect.argument: "${named}" is not a`} text argument of ${tool.name} ${dialect} gives (it has ${texts.join(', ') || 'none'})`,
    );
  }
  if (required.some((key) => key !== argument)) {
    throw unmapped(
      `${tool.name} needs more than ${argument}, and ${dialect} gives one argument: choose hermes or llama3`,
    );
  }
  return { tool, argument };
}

const unmapped = (message: string): GradusError => new GradusError('spec', 'invalid', message);
