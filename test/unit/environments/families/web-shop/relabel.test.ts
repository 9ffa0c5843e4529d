import { expect, test } from 'vitest';
import { RandomStream } from '../../../../../core/random.ts';
import type { ToolCall, Turn } from '../../../../../core/episode/episode.ts';
import type { Candidate, Demonstration, Task } from '../../../../../environments/contract/environment.ts';
import { webShopEnvironment } from '../../../../../environments/families/web-shop/environment.ts';
import { createVisits, splitOf, wishText } from '../../../../../environments/families/web-shop/goals.ts';
import { LEVELS } from '../../../../../environments/families/web-shop/levels.ts';
import { ENTRANCE, pageAt } from '../../../../../environments/families/web-shop/pages.ts';
import type { Goal, Purchase } from '../../../../../environments/families/web-shop/product.ts';
import { purchaseReward } from '../../../../../environments/families/web-shop/reward.ts';
import { addressAfter, readAt } from '../../../../../environments/families/web-shop/visit.ts';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';

const environment = webShopEnvironment();
const visits = createVisits();
const refAt = (level: number, index: number) =>
  ({ environment: 'web-shop', split: 'train', level, index }) as const;
const taskAt = (level: number, index: number) => environment.task(refAt(level, index)) as Task;

function played(task: Task, calls: readonly ToolCall[]): Candidate & { purchase?: Purchase } {
  const visit = visits(task.ref);
  let address = ENTRANCE;
  const turns = calls.map((call): Turn => {
    address = addressAfter(visit.shop, address, call);
    const observation = { text: readAt(visit, address).text };
    return { start: 0, end: 0, text: '', action: { kind: 'call', call }, observation };
  });
  const { purchase } = pageAt(visit.shop, address)!;
  const status = purchase ? ({ kind: 'ended' } as const) : ({ kind: 'truncated', limit: 'turns' } as const);
  return { task, episode: { turns, status }, answer: null, tools: [], ...(purchase && { purchase }) };
}
const click = (on: string): ToolCall => ({ name: 'click', arguments: { on } });

/** Searches for a product's title, opens it, reads what there is to read, chooses of each kind, and buys. */
function buys(
  task: Task,
  index: number,
  { reads = true, chooses = true, searches = '' } = {},
): Candidate & { purchase?: Purchase } {
  const { shop } = visits(task.ref);
  const random = new RandomStream('relabel', task.ref.level, task.ref.index, index);
  const calls: ToolCall[] = [];
  let address = ENTRANCE;
  const act = (call: ToolCall): void => {
    calls.push(call);
    address = addressAfter(shop, address, call);
  };
  const labels = () =>
    pageAt(shop, address)!
      .lines.flat()
      .flatMap((part) => (typeof part === 'string' ? [] : [part.label]));
  if (shop.entrance === 'search') {
    const { type } = random.pick(shop.products);
    act({ name: 'search', arguments: { query: searches || type } });
  }
  act(click(random.pick(labels().filter((label) => !['next', 'prev'].includes(label)))));
  if (reads && labels().includes('features')) {
    act(click('features'));
    act(click('back'));
  }
  const product = shop.byId.get(address.split(/[/?]/u)[2]!)!;
  if (chooses) for (const values of Object.values(product.options)) act(click(random.pick(values)));
  act(click('buy now'));
  return played(task, calls);
}
const goalIn = (task: Omit<Task, 'ref'>): Goal => (task.info as unknown as { goal: Goal }).goal;

test.each(LEVELS)(
  'what was bought at level $level is what another task asks for, and its verifier says so',
  async (level) => {
    let found = 0;
    for (let index = 0; index < 100; index++) {
      const candidate = buys(taskAt(level.level, index), index);
      const { task, episode, purchase } = candidate;
      const other = environment.relabel!(candidate);
      expect(environment.relabel!(candidate)).toEqual(other);
      if (other === null) continue;
      const goal = goalIn(other);
      expect(purchaseReward(goal, purchase!).reward).toBe(1);
      expect(splitOf(goal)).toBe('train');
      expect(goal.attributes.length).toBeGreaterThanOrEqual(level.attributes[0]);
      expect(goal.attributes.length).toBeLessThanOrEqual(level.attributes[1]);
      expect(Object.keys(goal.options).length).toBeGreaterThanOrEqual(level.options[0]);
      expect(Object.keys(goal.options).length).toBeLessThanOrEqual(level.options[1]);
      expect(goal.priceLimit === null).toBe(!level.priced);
      expect(other.prompt.startsWith(wishText(goal, level.shop))).toBe(true);
      const [answer] = await hostedHere(environment).relabellings(
        ['environment'],
        [{ ref: task.ref, episode }],
        { signal: new AbortController().signal },
      );
      expect(answer).toMatchObject({ prompt: other.prompt, said: [{ score: 1 }] });
      // Nothing is paid behind the other task for doing nothing, or for half of it.
      const verify = (one: Candidate) =>
        environment.verifiers[0]!.tier === 'fast' &&
        environment.verifiers[0]!.verify(
          { ...one, task: { ...other, ref: task.ref } },
          { signal: new AbortController().signal },
        );
      expect(verify(played(task, []))).toMatchObject({ score: 0 });
      const { turns } = episode;
      const half = turns.slice(0, -1).flatMap(({ action }) => (action.kind === 'call' ? [action.call] : []));
      expect(verify(played(task, half))).toMatchObject({ score: 0 });
      found++;
    }
    expect(found).toBeGreaterThan(10);
  },
);

test('an episode that bought nothing, or chose nothing where the level asks for a choice, has solved no other task', () => {
  for (let index = 0; index < 30; index++) {
    const task = taskAt(2, index);
    expect(environment.relabel!(played(task, []))).toBeNull();
    const whole = buys(task, index);
    const calls = whole.episode.turns.flatMap(({ action }) => (action.kind === 'call' ? [action.call] : []));
    expect(environment.relabel!(played(task, calls.slice(0, -1)))).toBeNull();
    expect(environment.relabel!(buys(task, index, { chooses: false }))).toBeNull();
  }
});

test('an episode with a refused or malformed turn, or of an agent, is no example', () => {
  const whole = Array.from({ length: 30 }, (_, i) => buys(taskAt(1, i), i)).find(
    (one) => environment.relabel!(one) !== null,
  )!;
  const beginningWith = (turn: Partial<Turn>): Candidate => ({
    ...whole,
    episode: { ...whole.episode, turns: [{ ...whole.episode.turns[0]!, ...turn }, ...whole.episode.turns] },
  });
  expect(
    environment.relabel!(beginningWith({ observation: { text: 'error: no', error: 'tool-error' } })),
  ).toBeNull();
  expect(environment.relabel!(beginningWith({ action: { kind: 'malformed', reason: '' } }))).toBeNull();
  expect(environment.relabel!({ ...whole, episode: { ...whole.episode, calls: [] } })).toBeNull();
});

test('an episode that searched for what the other wish does not say, or thought of its own, is no example', () => {
  let refused = 0;
  for (let index = 0; index < 40; index++) {
    const task = taskAt(3, index);
    const { goal } = visits(task.ref);
    const searches = `${goal.attributes[0]} ${goal.type}`;
    const candidate = buys(task, index, { searches });
    const other = environment.relabel!(candidate);
    const { product } = candidate.purchase!;
    if (product.type !== goal.type || !product.attributes.includes(goal.attributes[0]!)) {
      expect(other).toBeNull();
      refused++;
    }
    if (other === null) continue;
    const [colour] = Object.values(goal.options);
    if (Object.values(goalIn(other).options).includes(colour!)) continue;
    candidate.episode.turns[0]!.text = `it should be ${colour}`;
    expect(environment.relabel!(candidate)).toBeNull();
  }
  expect(refused).toBeGreaterThan(5);
});

test('only what was read of a product is in the other wish', () => {
  let unread = 0;
  for (let index = 0; index < 100; index++) {
    const task = taskAt(5, index);
    const { attributes: all, type } = visits(task.ref).shop.products.filter(({ titled }) => titled === 2)[
      index
    ]!;
    const searches = [...all.slice(0, 2), type].join(' ');
    const candidate = buys(task, index, { reads: false, searches });
    const other = environment.relabel!(candidate);
    if (other === null) continue;
    const { attributes, titled } = candidate.purchase!.product;
    for (const one of goalIn(other).attributes) expect(attributes.slice(0, titled)).toContain(one);
    unread++;
  }
  expect(unread).toBeGreaterThan(0);
});

test('the way of an expert needs no other task: it has the wish that it was asked', () => {
  const task = taskAt(4, 0);
  const { turns } = environment.demonstrate!(task, 0) as Demonstration;
  const other = environment.relabel!(
    played(
      task,
      turns.flatMap(({ call }) => call ?? []),
    ),
  );
  if (other !== null) expect(other.prompt).toBe(task.prompt);
});
