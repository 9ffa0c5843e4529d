import { canonicalJson } from '../core/json/canonical-json.ts';
import type { Json } from '../core/json/json.ts';
import type { ChatMessage, ToolDescription } from '../engine/dialect/contract.ts';
import type { StoredTurn } from './stored-turn.ts';

/** Where a request goes on: after `parent`, with `added`; without a parent it begins a branch of its own. */
export interface Place {
  parent: StoredTurn | null;
  added: ChatMessage[];
}

/** Tokens of a branch: the prompt, and all that follows, 1 in `mask` where they were sampled. */
export interface Row {
  promptTokens: number[];
  tokens: number[];
  mask: (0 | 1)[];
  samplerLogprobs: number[];
  kept?: number[][];
}

/**
 * The turns of an episode by what they followed. A request whose messages extend a path goes on from its tokens; whoever
 * rewrites what was said, or brings in turns that were not sampled here, begins a branch whose prompt is tokenized anew.
 */
export class TurnTree {
  private readonly byId = new Map<string, StoredTurn>();
  private readonly children = new Map<string | null, StoredTurn[]>();

  get size(): number {
    return this.byId.size;
  }

  /** In the order in which they came. */
  get all(): StoredTurn[] {
    return [...this.byId.values()];
  }

  get(id: string): StoredTurn | undefined {
    return this.byId.get(id);
  }

  add(turn: StoredTurn): void {
    if (this.byId.has(turn.id)) return;
    this.byId.set(turn.id, turn);
    const among = [...(this.children.get(turn.parent) ?? []), turn];
    this.children.set(turn.parent, among.toSorted(byContent));
  }

  /** The longest path that the messages extend. */
  place(messages: readonly ChatMessage[], tools: readonly ToolDescription[]): Place {
    const described = digestible(tools);
    const deepest = (parent: StoredTurn | null, at: number): { parent: StoredTurn | null; at: number } => {
      let best = { parent, at };
      for (const turn of this.children.get(parent?.id ?? null) ?? []) {
        const end = at + turn.messages.length;
        const extendsIt =
          turn.finish === 'stop' &&
          end + 1 < messages.length &&
          isSame(messages[end]!, turn.answer) &&
          digestible(turn.tools) === described &&
          turn.messages.every((message, i) => digestible(message) === digestible(messages[at + i]!));
        if (!extendsIt) continue;
        const found = deepest(turn, end + 1);
        if (found.at > best.at) best = found;
      }
      return best;
    };
    const { parent, at } = deepest(null, 0);
    const added = messages.slice(at);
    // Turns of others cannot follow a sampled one by tokens.
    return parent !== null && added.some(({ role }) => role === 'assistant')
      ? { parent: null, added: [...messages] }
      : { parent, added };
  }

  /** From the turn that began the branch to this one. */
  pathOf(turn: StoredTurn | null): StoredTurn[] {
    const path: StoredTurn[] = [];
    for (let at = turn; at; at = at.parent === null ? null : this.byId.get(at.parent)!) path.unshift(at);
    return path;
  }

  /** All that was said up to and with this turn. */
  messagesOf(turn: StoredTurn): ChatMessage[] {
    return this.pathOf(turn).flatMap(({ messages, answer }) => [...messages, answer]);
  }

  /** A path for each turn that no other follows, in an order that does not depend on which was sampled first. */
  branches(isTold: (turn: StoredTurn) => boolean = () => true): StoredTurn[][] {
    const below = (parent: string | null): StoredTurn[] =>
      (this.children.get(parent) ?? []).flatMap((turn) => {
        const leaves = below(turn.id);
        return leaves.length > 0 || !isTold(turn) ? leaves : [turn];
      });
    return below(null).map((leaf) => this.pathOf(leaf));
  }

  rows(): Row[] {
    return this.branches().map(rowOf);
  }
}

/** The tokens along a path. */
export function rowOf(path: readonly StoredTurn[]): Row {
  const row: Row = {
    promptTokens: [...(path[0]?.observed ?? [])],
    tokens: [],
    mask: [],
    samplerLogprobs: [],
  };
  const kept: number[][] = [];
  path.forEach((turn, i) => {
    const observed = i === 0 ? [] : turn.observed;
    row.tokens.push(...observed, ...turn.tokens);
    row.mask.push(...observed.map(() => 0 as const), ...turn.tokens.map(() => 1 as const));
    row.samplerLogprobs.push(...observed.map(() => 0), ...turn.samplerLogprobs);
    kept.push(...observed.map(() => []), ...(turn.kept ?? turn.tokens.map(() => [])));
  });
  return path.some((turn) => turn.kept) ? { ...row, kept } : row;
}

/** The shorter beginning first; of equal requests the one that was asked first. */
const byContent = (a: StoredTurn, b: StoredTurn): number =>
  a.asked === b.asked
    ? a.ordinal - b.ordinal
    : a.observed.length - b.observed.length || (a.asked < b.asked ? -1 : 1);

const digestible = (value: unknown): string => canonicalJson(JSON.parse(JSON.stringify(value)) as Json);

/** A thought that is left out is no rewriting: most agents do not keep it. */
function isSame(sent: ChatMessage, answer: ChatMessage): boolean {
  if (sent.role !== 'assistant' || sent.content.trim() !== answer.content.trim()) return false;
  if (sent.reasoning_content !== undefined && sent.reasoning_content !== (answer.reasoning_content ?? ''))
    return false;
  return digestible(sent.tool_calls ?? []) === digestible(answer.tool_calls ?? []);
}
