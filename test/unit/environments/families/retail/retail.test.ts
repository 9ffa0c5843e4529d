import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../../core/random.ts';
import type { ToolCall } from '../../../../../core/episode/episode.ts';
import type { Split } from '../../../../../core/refs.ts';
import type { Demonstration, Task } from '../../../../../environments/contract/environment.ts';
import { PATIENCE } from '../../../../../environments/families/retail/customer.ts';
import { goalOf } from '../../../../../environments/families/retail/goal.ts';
import { retailEnvironment } from '../../../../../environments/families/retail/environment.ts';
import { applyWrite, WRITES } from '../../../../../environments/families/retail/shop.ts';
import { call, played, say, scoreOf } from './played.ts';

const environment = retailEnvironment();
const SPLITS: Split[] = ['train', 'heldout', 'test'];
const { levels } = environment;
const taskAt = (split: Split, level: number, index: number): Task =>
  environment.task({ environment: 'retail', split, level, index }) as Task;
const tasks = (level: number, count: number): Task[] =>
  Array.from({ length: count }, (_, index) => taskAt(SPLITS[index % 3]!, level, index));
const expert = (task: Task): { calls: ToolCall[]; answer: string } => {
  const { turns } = environment.demonstrate!(task, 0) as Demonstration;
  return { calls: turns.flatMap((turn) => turn.call ?? []), answer: turns.at(-1)!.answer! };
};
/** A write's arguments, each drawn among the values that the shop has. */
function randomWrite(task: Task, random: RandomStream): ToolCall {
  const { shop, catalogue } = goalOf(task);
  const mine = shop.orders.filter(({ customer }) => customer === '1');
  const order = random.pick(mine);
  const variants = catalogue.flatMap(({ variants: all }) => all.map(({ id }) => id));
  const values: Record<string, string> = {
    order: order.id,
    item: random.pick(order.items).id,
    to: variants.length === 0 ? '1' : random.pick(variants),
    payment: random.pick(shop.customers[0]!.payments),
    address: `${random.int(1, 99)} Oak Street`,
  };
  const name = random.pick(WRITES);
  const fields: Record<string, string[]> = {
    cancel_order: ['order'],
    change_address: ['order', 'address'],
    change_payment: ['order', 'payment'],
    change_item: ['order', 'item', 'to'],
    return_item: ['order', 'item', 'payment'],
    exchange_item: ['order', 'item', 'to'],
    change_account_address: ['address'],
  };
  return call(name, Object.fromEntries(fields[name]!.map((field) => [field, values[field]!])));
}
const signIn = (task: Task): ToolCall[] => {
  const { signedIn, shop } = goalOf(task);
  return signedIn ? [] : [call('find_customer_by_email', { email: shop.customers[0]!.email })];
};

describe('retail tasks', () => {
  test('the same coordinates give the same task, and no order of one split is in a task of another', () => {
    const owner = new Map<string, Split>();
    for (const split of SPLITS) {
      for (const level of levels) {
        for (let index = 0; index < 300; index++) {
          const task = taskAt(split, level, index);
          expect(taskAt(split, level, index)).toEqual(task);
          for (const { id } of goalOf(task).shop.orders) {
            if ((owner.get(id) ?? split) !== split) expect.fail(`${id} is in ${owner.get(id)} and ${split}`);
            owner.set(id, split);
          }
        }
      }
    }
  });

  test('coordinates that do not exist are refused', () => {
    expect(() => taskAt('train', 6, 0)).toThrow('levels are 1, 2, 3, 4, 5');
    expect(() => taskAt('train', 1, -1)).toThrow('no task -1');
  });

  test.each(levels)('an expert solves level %i, and each call is answered as demonstrated', async (level) => {
    for (const task of tasks(level, 150)) {
      const { turns } = environment.demonstrate!(task, 0) as Demonstration;
      const { calls, answer } = expert(task);
      const candidate = played(task, calls, answer);
      expect(candidate.told).toEqual(turns.flatMap(({ observation }) => observation ?? []));
      expect(candidate.told.filter((text) => text.startsWith('error'))).toEqual([]);
      expect(await scoreOf(candidate)).toBe(1);
    }
  });

  test('each write and each way to be wrong about an order comes up', () => {
    const names = new Set(
      levels.flatMap((level) => tasks(level, 150).flatMap(({ calls }) => calls!.map(({ name }) => name))),
    );
    expect(names).toEqual(new Set(WRITES));
  });
});

test.each([
  [1, 4000],
  [4, 2000],
  [5, 2000],
])('each wish of level %i changes something', (level, count) => {
  for (const task of tasks(level, count)) {
    const { shop, catalogue, customer, wishes } = goalOf(task);
    for (const { write } of wishes) {
      if (write !== null) expect(applyWrite(shop, catalogue, customer, write)).not.toEqual(shop);
    }
  }
});

describe.each(levels)('what passes nothing at level %i', (level) => {
  const all = tasks(level, 90);

  test('doing nothing, or answering anything at once', async () => {
    for (const task of all) {
      for (const answer of [null, 'done', 'Goodbye.', expert(task).answer]) {
        expect(await scoreOf(played(task, [], answer))).toBe(0);
        expect(await scoreOf(played(task, signIn(task), answer))).toBe(0);
      }
    }
  });

  test('refusing all, in the words that she takes for it, and handing over', async () => {
    for (const task of all) {
      const { shop } = goalOf(task);
      const refusals = shop.orders.map(({ id }) => say(`I cannot do that with order ${id}.`));
      const candidate = played(
        task,
        [...signIn(task), ...refusals, ...refusals],
        'Sorry, that is not possible.',
      );
      expect(await scoreOf(candidate)).toBe(0);
      expect(await scoreOf(played(task, [...signIn(task), call('transfer')], 'done'))).toBe(0);
    }
  });

  test('random writes, with offers of their own before them or without', async () => {
    for (const [i, task] of all.entries()) {
      const random = new RandomStream('test', level, i);
      const writes = Array.from({ length: 8 }, () => randomWrite(task, random));
      const offered = writes.flatMap((write) => [
        say(`${write.name.replaceAll('_', ' ')} ${Object.values(write.arguments as object).join(' ')}?`),
        write,
      ]);
      const { answer } = expert(task);
      expect(await scoreOf(played(task, [...signIn(task), ...writes], answer))).toBe(0);
      const withOffers = played(task, [...signIn(task), ...offered], answer);
      const consented = (withOffers.episode.session!.state as unknown as { wrote: { consented: boolean }[] })
        .wrote;
      if (consented.some((one) => !one.consented)) expect(await scoreOf(withOffers)).toBe(0);
    }
  });

  test("the expert's calls without what was said, or said after the writes", async () => {
    for (const task of all) {
      const { calls, answer } = expert(task);
      const silent = calls.filter(({ name }) => name !== 'say');
      const spoken = calls.filter(({ name }) => name === 'say');
      expect(await scoreOf(played(task, silent, answer))).toBe(0);
      expect(await scoreOf(played(task, [...silent, ...spoken], answer))).toBe(0);
    }
  });

  test("the expert's episode without its answer, without one of its writes, or with one more", async () => {
    for (const [i, task] of all.entries()) {
      const { calls, answer } = expert(task);
      expect(await scoreOf(played(task, calls, null))).toBe(0);
      const writes = calls.filter(({ name }) => (WRITES as readonly string[]).includes(name));
      for (const write of writes) {
        expect(
          await scoreOf(
            played(
              task,
              calls.filter((one) => one !== write),
              answer,
            ),
          ),
        ).toBe(0);
      }
      const more = call('change_account_address', { address: `${i} Nowhere` });
      expect(await scoreOf(played(task, [...calls, more], answer))).toBe(0);
    }
  });

  test('one message that offers everything', async () => {
    for (const task of all) {
      const { shop, catalogue } = goalOf(task);
      const ids = shop.orders.flatMap(({ id, items }) => [id, ...items.map((item) => item.id)]);
      const everything = [...ids, ...catalogue.flatMap(({ variants }) => variants.map(({ id }) => id))].join(
        ' ',
      );
      const words = 'cancel return exchange change send pay account';
      const { calls, answer } = expert(task);
      const cheat = calls.flatMap((one) =>
        one.name === 'say' &&
        (one.arguments as { text: string }).text.endsWith('?') &&
        /order|account/.test(JSON.stringify(one))
          ? [say(`${words} ${everything} ${JSON.stringify(task.calls)}?`)]
          : [one],
      );
      expect(await scoreOf(played(task, cheat, answer))).toBe(0);
    }
  });

  test('all prices at once for the one that was asked for, or a guess after the other', async () => {
    for (const task of all) {
      const { wishes, shop } = goalOf(task);
      const facts = wishes.flatMap(({ fact }) => fact ?? []);
      if (!facts.some((fact) => fact.startsWith('$'))) continue;
      const { calls, answer } = expert(task);
      const isMute = ({ name, arguments: args }: ToolCall): boolean =>
        name === 'say' && facts.some((fact) => (args as { text: string }).text.includes(fact));
      const mute = calls.map((one) => (isMute(one) ? say('Done. Anything else?') : one));
      const silent = facts.includes(answer) ? 'done' : answer;
      expect(await scoreOf(played(task, mute, silent))).toBe(0);
      const prices = new Set(shop.orders.flatMap(({ items }) => items.map(({ price }) => `$${price}`)));
      const list = [...prices, ...facts, '$1', '$2'].join(' ');
      expect(await scoreOf(played(task, [...mute, say(list)], list))).toBe(0);
      const guesses = ['$1', '$2', '$3', '$4', ...facts].map(say);
      expect(await scoreOf(played(task, [...mute, ...guesses], silent))).toBe(0);
    }
  });
});

describe('wishes that cannot be', () => {
  const all = tasks(5, 150);
  const placeOf = (task: Task): number => goalOf(task).wishes.findIndex(({ write }) => write === null);
  const refused = all.filter((task) => placeOf(task) >= 0);
  const isRefusal = ({ name, arguments: args }: ToolCall): boolean =>
    name === 'say' && (args as { text: string }).text.startsWith('I cannot');

  test('are at any place or at none, and about any of several orders', () => {
    expect(new Set(all.map(placeOf))).toEqual(new Set([-1, 0, 1, 2]));
    const places = new Set(
      refused.map((task) => {
        const { shop, wishes } = goalOf(task);
        const own = shop.orders.filter(({ customer }) => customer === '1');
        expect(own).toHaveLength(5);
        return own.findIndex(({ id }) => id === wishes[placeOf(task)]!.order);
      }),
    );
    expect(places).toEqual(new Set([0, 1, 2, 3, 4]));
  });

  test('are to be said to be so, for their order alone', async () => {
    for (const task of refused) {
      const { calls, answer } = expert(task);
      const silent = calls.filter((one) => !isRefusal(one));
      expect(await scoreOf(played(task, silent, answer))).toBe(0);
      const ids = goalOf(task).shop.orders.map(({ id }) => id);
      const list = calls.map((one) => (isRefusal(one) ? say(`I cannot do that: ${ids.join(' ')}.`) : one));
      expect(await scoreOf(played(task, list, answer))).toBe(0);
    }
  });

  const toldBy = (task: Task, ...messages: string[]): ToolCall[] =>
    expert(task).calls.flatMap((one) => (isRefusal(one) ? messages.map(say) : [one]));

  test.each([
    'Nothing can be done with order ID.',
    'To order ID nothing can be done: it is STATUS.',
    'I am sorry, order ID has been STATUS and can no longer be changed.',
    'I am sorry, order ID is STATUS, so it can no longer be cancelled.',
    'Sorry, order ID is already STATUS; only pending orders can be cancelled or sent elsewhere.',
    'Sorry, order ID is already STATUS.',
    'Sorry, order ID is STATUS: only an order that is pending can be changed.',
    'Sorry, order ID has been STATUS and can’t be cancelled.',
    'Sorry, order ID is STATUS; that is against our policy.',
    'It is too late for order ID. Anything else?',
  ])('may be said to be so in other words: %s', async (words) => {
    for (const task of refused) {
      const { shop, wishes } = goalOf(task);
      const { id, status } = shop.orders.find((order) => order.id === wishes[placeOf(task)]!.order)!;
      const text = words.replace('ID', id).replace('STATUS', status);
      const candidate = played(task, toldBy(task, text), expert(task).answer);
      expect(await scoreOf(candidate)).toBe(1);
    }
  });

  test('are not said to be so by a status alone, by what she wants, or by an offer', async () => {
    for (const task of refused) {
      const { order } = goalOf(task).wishes[placeOf(task)]!;
      for (const text of [
        `Order ${order} is delivered.`,
        `You no longer want order ${order}. Shall I cancel it?`,
        `You do not need order ${order}: shall I cancel it?`,
      ]) {
        const candidate = played(task, toldBy(task, text), expert(task).answer);
        expect(candidate.told.filter((text) => text.startsWith('No,'))).toEqual([]);
        expect(await scoreOf(candidate)).toBe(0);
      }
    }
  });

  test('are not found out by saying so of one order after the other', async () => {
    for (const task of all) {
      const { shop, wishes } = goalOf(task);
      const cannot = wishes[placeOf(task)]?.order;
      // Of an order that was changed there is nothing to find out.
      const changed = task.calls!.map(({ arguments: args }) => (args as { order?: string }).order);
      const own = shop.orders.flatMap(({ id, customer }) =>
        customer === '1' && !changed.includes(id) ? id : [],
      );
      const { calls, answer } = expert(task);
      for (const words of [
        'Impossible: ID.',
        'I cannot do that with order ID.',
        'Order ID is already shipped.',
      ]) {
        const each = own.map((id) => words.replace('ID', id));
        // Whoever stops at the right one has guessed, too.
        for (const messages of cannot === undefined ? [] : [each, each.slice(0, own.indexOf(cannot) + 1)]) {
          const isLuck = messages.length === 1;
          const candidate = played(task, toldBy(task, ...messages), answer);
          expect(await scoreOf(candidate)).toBe(isLuck ? 1 : 0);
        }
        expect(await scoreOf(played(task, [...each.map(say), ...calls], answer))).toBe(0);
      }
    }
  });
});

test.each(levels)(
  'an expert of level %i may name the items of an order that it changes as a whole',
  async (level) => {
    for (const task of tasks(level, 150)) {
      const { calls, answer } = expert(task);
      const named = calls.map((one) => {
        const text = one.name === 'say' ? (one.arguments as { text: string }).text : '';
        const id = /^(?:Cancel|Send|Pay) order (\d+)/u.exec(text)?.[1];
        if (id === undefined) return one;
        const { items } = goalOf(task).shop.orders.find((order) => order.id === id)!;
        return say(text.replace('?', `: items ${items.map((item) => item.id).join(', ')}?`));
      });
      expect(await scoreOf(played(task, named, answer))).toBe(1);
    }
  },
);

test('a street number is no item', async () => {
  for (const task of tasks(1, 3000)) {
    const { calls, answer } = expert(task);
    const { items } = goalOf(task).shop.orders[0]!;
    const address = (task.calls![0]!.arguments as Record<string, string>)['address'];
    if (address?.startsWith(`${items[0]!.id} `)) {
      expect(await scoreOf(played(task, calls, answer))).toBe(1);
      return;
    }
  }
  expect.fail('no such task');
});

test('amounts that are said one after the other are no answer', async () => {
  let asked = 0;
  for (const task of tasks(4, 90)) {
    const { wishes, shop } = goalOf(task);
    const amounts = new Set(wishes.flatMap(({ fact }) => (fact?.startsWith('$') ? [fact] : [])));
    if (amounts.size === 0) continue;
    asked++;
    const { calls, answer } = expert(task);
    const prices = shop.orders.flatMap(({ items }) => items.map(({ price }) => `$${price}`));
    const others = [...new Set(prices)].filter((price) => !amounts.has(price)).slice(0, 2);
    const guesses = others.map((price) => say(`${price}.`));
    expect(await scoreOf(played(task, [...calls, guesses[0]!], answer))).toBe(1);
    expect(await scoreOf(played(task, [...calls, ...guesses], answer))).toBe(0);
  }
  expect(asked).toBeGreaterThan(30);
});

test.each([4, 5])('an expert of level %i who says what was done offers nothing by it', async (level) => {
  const said: Record<string, string> = {
    cancel_order: 'is cancelled',
    change_address: 'will be sent to the new address',
    change_payment: 'will be paid that way',
    change_item: 'has the item changed',
    return_item: 'has the return requested',
    exchange_item: 'has the exchange requested',
  };
  for (const task of tasks(level, 60)) {
    const { calls, answer } = expert(task);
    const polite = calls.map((one, i) => {
      const before = calls[i - 1];
      if (one.name !== 'say' || !(WRITES as readonly string[]).includes(before?.name ?? '')) return one;
      const { order } = before!.arguments as { order?: string };
      const done =
        order === undefined ? 'Your account address is changed.' : `Order ${order} ${said[before!.name]}.`;
      return say(`${done} ${(one.arguments as { text: string }).text}`);
    });
    const candidate = played(task, polite, answer);
    expect(candidate.told.filter((text) => text.startsWith('No'))).toEqual([]);
    expect(await scoreOf(candidate)).toBe(1);
  }
});

describe('the customer', () => {
  const task = tasks(1, 300).find(({ calls }) => calls![0]!.name === 'return_item')!;
  const { order, item, payment } = task.calls![0]!.arguments as Record<string, string>;
  const heard = (...messages: string[]): string[] => played(task, messages.map(say), null).told;

  test('agrees to what she wants in other words, too', () => {
    expect(
      heard(`Shall I return the item ${item} from order ${order} and refund it to your ${payment}?`),
    ).toEqual(['yes']);
  });

  test('does not agree where the action, the order, the item or the payment is missing, wrong or one of several', () => {
    for (const text of [
      `Cancel item ${item} of order ${order} to ${payment}?`,
      `Return or cancel item ${item} of order ${order} to ${payment}?`,
      `Return order ${order} to ${payment}?`,
      `Return item ${item} of order ${order}?`,
      `Return item ${item} of order ${order} to cash?`,
      `Return item ${item} of order ${order} to visa, paypal, bank or gift card?`,
      `I will not return item ${item} of order ${order} to ${payment}.`,
    ]) {
      expect(heard(text)[0]).not.toBe('yes');
    }
  });

  test('takes a no for what it stands beside', () => {
    expect(
      heard(
        `I understand that you do not want it. Shall I return item ${item} of order ${order} to ${payment}?`,
      ),
    ).toEqual(['yes']);
  });

  test('leaves after a few wrong offers, and the episode is over', async () => {
    const wrong = Array.from({ length: PATIENCE }, () => say(`Cancel order ${order}?`));
    const { calls, answer } = expert(task);
    const candidate = played(task, [...wrong, ...calls], answer);
    expect(candidate.told.at(-1)).toBe('No. Goodbye.');
    expect(await scoreOf(candidate)).toBe(0);
  });

  test('says what is known of her when asked, and what she wants when nothing else fits', () => {
    const { said } = goalOf(task).wishes[0]!;
    const { email, name, zip } = goalOf(task).shop.customers[0]!;
    expect(heard('Your e-mail, please?', 'What is your zip code?', 'Nice weather.')).toEqual([
      email,
      `${name}, ${zip}`,
      said,
    ]);
  });
});

test('the desk is never changed in place, and reads leave it as it is', () => {
  for (const level of levels) {
    for (const task of tasks(level, 30)) {
      const frozen = { ...task, info: deepFreeze(structuredClone(task.info)) } as Task;
      const { calls, answer } = expert(frozen);
      expect(played(frozen, calls, answer).episode.session).toEqual(
        played(task, calls, answer).episode.session,
      );
    }
  }
});

test('the state of a long conversation is small', () => {
  const task = taskAt('train', 5, 0);
  const { calls, answer } = expert(task);
  const chatter = Array.from({ length: 40 }, () => say('x'.repeat(300)));
  const { session } = played(task, [...chatter, ...calls], answer).episode;
  expect(JSON.stringify(session!.state).length).toBeLessThan(32_000);
});

test('nobody reads the database before the customer is found, nor orders of another customer', () => {
  const task = taskAt('train', 4, 0);
  const other = goalOf(task).shop.orders.find(({ customer }) => customer !== '1')!;
  const { told } = played(
    task,
    [
      call('get_order', { order: other.id }),
      call('list_products'),
      ...signIn(task),
      call('get_order', { order: other.id }),
    ],
    null,
  );
  expect(told[0]).toBe('error: find the customer first');
  expect(told[1]).toBe('error: find the customer first');
  expect(told[3]).toBe(`error: the customer has no order ${other.id}`);
});

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}
