import type { ToolCall } from '../../../core/episode/episode.ts';
import { calculate } from '../calculator/tool.ts';
import { ToolRefusal } from '../../contract/environment.ts';
import type { ActedFully } from '../../contract/session.ts';
import { FIRST_MOOD, reply, writeKey, type Mood } from './customer.ts';
import type { Goal } from './goal.ts';
import { applyWrite, orderOf, WRITES, type Customer, type Order, type Shop, type Write } from './shop.ts';

/** What an episode has come to: all of it is passed from call to call. */
export interface Desk {
  shop: Shop;
  /** Id of the customer who has been found; null before. */
  signedIn: string | null;
  mood: Mood;
  /** Writes in their order, and whether the customer had said yes to them. */
  wrote: readonly { write: string; consented: boolean }[];
  /** Messages to the customer. */
  said: readonly string[];
}

export const openDesk = ({ shop, customer, signedIn }: Goal): Desk => ({
  shop,
  signedIn: signedIn ? customer : null,
  mood: FIRST_MOOD,
  wrote: [],
  said: [],
});

/** A call at the desk. Throws ToolRefusal; calls and desk are JSON, and neither is changed. */
export function actAtDesk(
  desk: Desk,
  goal: Goal,
  { name, arguments: args }: ToolCall,
): { state: Desk; did: ActedFully } {
  const given = args as Record<string, string>;
  if (name === 'say') return say(desk, goal, given['text']!);
  if (isWrite(name)) {
    const write = { name, arguments: given } as Write;
    const shop = applyWrite(desk.shop, goal.catalogue, customerAt(desk).id, write);
    const key = writeKey(write);
    const wrote = [...desk.wrote, { write: key, consented: desk.mood.consented.includes(key) }];
    return { state: { ...desk, shop, wrote }, did: { text: 'done' } };
  }
  const found = READS[name as keyof typeof READS](desk, goal, given);
  return typeof found === 'string'
    ? { state: desk, did: { text: found, ...(name === 'transfer' && { done: true }) } }
    : { state: { ...desk, signedIn: found.id }, did: { text: accountText(found) } };
}

const isWrite = (name: string): name is Write['name'] => (WRITES as readonly string[]).includes(name);

function say(desk: Desk, goal: Goal, text: string): { state: Desk; did: ActedFully } {
  const done = desk.wrote.map(({ write }) => write);
  const { mood, text: answer, left } = reply(goal, desk.mood, done, text);
  return {
    state: { ...desk, mood, said: [...desk.said, text] },
    did: { text: answer, ...(left && { done: true }) },
  };
}

type Read = (desk: Desk, goal: Goal, args: Record<string, string>) => string | Customer;

/** Tools that change nothing of the shop; one that gives a customer signs him in. */
const READS = {
  find_customer_by_email: ({ shop }, _, { email }) =>
    found(shop.customers.find((one) => one.email === email!.toLowerCase())),
  find_customer_by_name: ({ shop }, _, { name, zip }) =>
    found(shop.customers.find((one) => one.name.toLowerCase() === name!.toLowerCase() && one.zip === zip)),
  get_customer: (desk) => accountText(customerAt(desk)),
  list_orders: (desk) => {
    const { id } = customerAt(desk);
    const orders = desk.shop.orders.filter(({ customer }) => customer === id);
    return orders.map((order) => `${order.id} ${order.status}`).join('\n');
  },
  get_order: (desk, _, { order }) => orderText(orderOf(desk.shop, customerAt(desk).id, order!)),
  list_products: (desk, { catalogue }) => {
    customerAt(desk);
    return catalogue.map(({ name }) => name).join(', ');
  },
  get_product: (desk, { catalogue }, { name }) => {
    customerAt(desk);
    const product = catalogue.find((one) => one.name === name!.toLowerCase());
    if (product === undefined) throw new ToolRefusal(`no product is called ${name}`);
    return product.variants
      .map(({ id, options, price, inStock }) => `${id} ${options} $${price}${inStock ? '' : ' out of stock'}`)
      .join('\n');
  },
  calculate: (_, __, { expression }) => calculate(expression!),
  transfer: () => 'a person takes over',
} satisfies Record<string, Read>;

function found(customer: Customer | undefined): Customer {
  if (customer === undefined) throw new ToolRefusal('no such customer');
  return customer;
}

function customerAt({ shop, signedIn }: Desk): Customer {
  const customer = shop.customers.find(({ id }) => id === signedIn);
  if (customer === undefined) throw new ToolRefusal('find the customer first');
  return customer;
}

const accountText = ({ name, email, zip, address, payments }: Customer): string =>
  `${name}, ${email}, ${address}, ${zip}; pays by ${payments.join(', ')}`;

/** `pending; item 31 mug, blue $24; visa; 5 Oak Street`: what a policy needs most stands first. */
function orderText({ status, items, payment, address, tracking }: Order): string {
  const lines = items.map(({ id, product, options, price, state }) => {
    const is = [product, options].filter(Boolean).join(', ');
    return `item ${id} ${is} $${price}${state === 'ordered' ? '' : ` (${state})`}`;
  });
  return [status, ...lines, payment, address, ...(tracking === '' ? [] : [tracking])].join('; ');
}
