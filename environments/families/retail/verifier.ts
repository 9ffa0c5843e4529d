import { canonicalJson } from '../../../core/json/canonical-json.ts';
import type { Json } from '../../../core/json/json.ts';
import type { FastVerifier } from '../../contract/environment.ts';
import { openDesk, type Desk } from './desk.ts';
import { goalOf, type Goal } from './goal.ts';
import { applyWrite, type Shop } from './shop.ts';

/** Different values of a kind that may be said in a whole conversation beyond those asked for: more is guessing. */
const MORE_TOLD = 1;
const KINDS = [/\$\d+/gu, /\bT\d+\b/gu];

/** The shop as the customer wants it. */
const wantedShop = ({ shop, catalogue, customer, wishes }: Goal): Shop =>
  wishes.reduce(
    (now, { write }) => (write === null ? now : applyWrite(now, catalogue, customer, write)),
    shop,
  );

/** Whether what was asked for was told: in a message that has no other value of its kind. */
function areFactsReported({ wishes }: Goal, messages: readonly string[]): boolean {
  const facts = wishes.flatMap(({ fact }) => fact ?? []);
  return KINDS.every((kind) => {
    const valuesIn = (text: string): Set<string> => new Set(text.match(kind));
    const wanted = facts.filter((fact) => fact.search(kind) === 0);
    if (wanted.length === 0) return true;
    const lines = messages.filter((message) =>
      [...valuesIn(message)].every((value) => wanted.includes(value)),
    );
    const all = valuesIn(messages.join('\n'));
    return (
      all.size <= new Set(wanted).size + MORE_TOLD &&
      wanted.every((fact) => lines.some((message) => valuesIn(message).has(fact)))
    );
  });
}

/** What must hold of a conversation, and whether it does. */
export const checksOf = (goal: Goal, desk: Desk, answer: string | null) => ({
  ended: answer !== null,
  state: same(desk.shop, wantedShop(goal)),
  facts: areFactsReported(goal, [...desk.said, answer ?? '']),
  refusals: goal.wishes.every(
    ({ write }, i) => write !== null || (desk.mood.accepted.includes(i) && !desk.mood.misled),
  ),
  consent: desk.wrote.every(({ consented }) => consented),
});

/**
 * 1 where the conversation came to its end with an answer, the shop is as the customer wants it, she was told what she
 * asked for and what cannot be and of no other order that it cannot, and she had said yes to each change before it was made; else 0.
 */
export function retailVerifier(): FastVerifier {
  return {
    name: 'retail',
    version: '3',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ task, episode, answer }) => {
      const goal = goalOf(task);
      const desk = (episode.session?.state as unknown as Desk | undefined) ?? openDesk(goal);
      const checks = checksOf(goal, desk, answer);
      const failed = Object.entries(checks).flatMap(([name, holds]) => (holds ? [] : [name]));
      return {
        kind: 'score',
        score: failed.length === 0 ? 1 : 0,
        evidence: failed.length === 0 ? 'state, facts, refusals and consent' : `not: ${failed.join(', ')}`,
      };
    },
  };
}

const same = (a: Shop, b: Shop): boolean =>
  canonicalJson(a as unknown as Json) === canonicalJson(b as unknown as Json);
