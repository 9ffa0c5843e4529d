import type { RandomStream } from '../../../core/random.ts';
import { printExpression, type Expression, type Operation } from './expression.ts';

// Few words, so that each becomes one token.
const NAMES = ['Tom', 'Ana', 'Sam', 'Mia', 'Leo', 'Eva'];
const THINGS = ['apples', 'books', 'pens', 'coins', 'cards', 'eggs'];
const MORE = ['buys', 'finds', 'gets'];
const LESS = ['loses', 'sells', 'drops'];

/**
 * An expression as a story, or undefined where it does not read as one: it must be a chain, each operation on the
 * result so far and a number, with times only first or last and a division only last.
 */
export function tellStory(expression: Operation, random: RandomStream): string | undefined {
  const chain = chainOf(expression);
  if (chain === undefined) return undefined;
  const name = random.pick(NAMES);
  const thing = random.pick(THINGS);
  const { start, links } = chain;
  let opening = `${name} has ${start} ${thing}`;
  let middle = links;
  let question = 'How many?';
  let sharing: string | undefined;

  const first = links[0]!;
  if (first.operator === '*' && (links.length > 1 || random.uniform() < 0.5)) {
    opening = `${name} has ${start} boxes of ${first.operand} ${thing}`;
    middle = links.slice(1);
  }
  const last = middle.at(-1);
  if (last?.operator === '*') {
    const other = random.pick(NAMES.filter((one) => one !== name));
    question = `${other} has ${last.operand} times as many. How many has ${other}?`;
    middle = middle.slice(0, -1);
  } else if (last?.operator === '/') {
    sharing = `shares them among ${last.operand} friends`;
    question = 'How many each?';
    middle = middle.slice(0, -1);
  }
  if (middle.some(({ operator }) => operator === '*' || operator === '/')) return undefined;
  const events = middle.map(
    ({ operator, operand }) => `${random.pick(operator === '+' ? MORE : LESS)} ${operand}`,
  );
  if (sharing !== undefined) events.push(sharing);
  const ending = events.pop();
  return `${[opening, ...events].join(', ')}${ending === undefined ? '' : ` and ${ending}`}. ${question}`;
}

interface Link {
  operator: Operation['operator'];
  operand: string;
}

function chainOf(expression: Operation): { start: string; links: Link[] } | undefined {
  const links: Link[] = [];
  let rest: Expression = expression;
  while (typeof rest !== 'bigint') {
    const { operator, left, right }: Operation = rest;
    if (typeof right !== 'bigint') return undefined;
    links.unshift({ operator, operand: printExpression(right) });
    rest = left;
  }
  return { start: printExpression(rest), links };
}
