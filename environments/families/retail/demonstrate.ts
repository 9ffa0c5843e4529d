import type { Json } from '../../../core/json/json.ts';
import type { Demonstration, DemonstrationTurn, Task } from '../../contract/environment.ts';
import { actAtDesk, openDesk, type Desk } from './desk.ts';
import { customerOf, goalOf, type Goal, type CustomerWish } from './goal.ts';
import type { Order, Write } from './shop.ts';
import { LEVELS } from './levels.ts';

/** What an expert says before a write. */
const OFFERS: { [Name in Write['name']]: (args: Extract<Write, { name: Name }>['arguments']) => string } = {
  cancel_order: ({ order }) => `Cancel order ${order}?`,
  change_address: ({ order, address }) => `Send order ${order} to ${address}?`,
  change_payment: ({ order, payment }) => `Pay order ${order} by ${payment}?`,
  change_item: ({ order, item, to }) => `Change item ${item} of order ${order} to ${to}?`,
  return_item: ({ order, item, payment }) => `Return item ${item} of order ${order} to ${payment}?`,
  exchange_item: ({ order, item, to }) => `Exchange item ${item} of order ${order} for ${to}?`,
  change_account_address: ({ address }) => `Change the account's address to ${address}?`,
};

const offerOf = ({ name, arguments: args }: Write): string =>
  (OFFERS[name] as (args: unknown) => string)(args);

/** Finds out what is there, offers each change, makes it after the yes, tells what was asked for, and answers. */
export function demonstrate(task: Task): Demonstration {
  const goal = goalOf(task);
  const { whole, first } = LEVELS.find(({ level }) => level === task.ref.level)!;
  const expert = new Expert(goal);
  if (whole) {
    expert.say('What is your e-mail address?');
    expert.call('find_customer_by_email', { email: customerOf(goal).email });
    expert.call('list_orders', {});
  }
  for (const wish of goal.wishes) {
    if (whole || first === 'looked-up') expert.lookUp(wish);
    if (wish.write === null) {
      const { status } = goal.shop.orders.find(({ id }) => id === wish.order)!;
      expert.say(`I cannot do that with order ${wish.order!}: it is ${status}.`);
      continue;
    }
    expert.say(offerOf(wish.write));
    expert.call(wish.write.name, wish.write.arguments);
    if (!whole) continue;
    expert.say(wish.fact === undefined ? 'Done. Anything else?' : `Done: ${wish.fact}. Anything else?`);
  }
  const [{ fact }] = goal.wishes as [CustomerWish];
  expert.turns.push({ answer: whole ? 'Goodbye.' : (fact ?? 'done') });
  return { turns: expert.turns, weight: 1 };
}

/** Plays the calls as they are demonstrated, so that they come with what they are answered. */
class Expert {
  readonly turns: DemonstrationTurn[] = [];
  private readonly goal: Goal;
  private desk: Desk;

  constructor(goal: Goal) {
    this.goal = goal;
    this.desk = openDesk(goal);
  }

  say(text: string): void {
    this.call('say', { text });
  }

  call(name: string, args: Json): void {
    const call = { name, arguments: args };
    const { state, did } = actAtDesk(this.desk, this.goal, call);
    this.desk = state;
    this.turns.push({ call, observation: did.text });
  }

  /** Reads what a wish is about: the order, and what else the product comes in. */
  lookUp({ write, order }: CustomerWish): void {
    const id = order ?? (write !== null && 'order' in write.arguments ? write.arguments.order : undefined);
    if (id === undefined) return;
    // With the product's name alone, the orders are read until it is found.
    const mine: readonly Order[] = this.goal.signedIn
      ? this.goal.shop.orders
      : this.goal.shop.orders.filter(({ customer }) => customer === this.goal.customer);
    for (const one of mine) {
      if (!this.hasRead(one.id)) this.call('get_order', { order: one.id });
      if (one.id === id) break;
    }
    if (write === null || !('to' in write.arguments)) return;
    const { item } = write.arguments;
    const { product } = mine.find((one) => one.id === id)!.items.find((one) => one.id === item)!;
    this.call('get_product', { name: product });
  }

  private hasRead(order: string): boolean {
    return this.turns.some(
      ({ call }) => call?.name === 'get_order' && (call.arguments as { order: string }).order === order,
    );
  }
}
