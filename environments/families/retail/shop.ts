import { ToolRefusal } from '../../contract/environment.ts';

// The shop's database and what can be done to it, as pure functions: each makes a new shop and leaves the old one.

interface Variant {
  id: string;
  /** Such as `red, large`. */
  options: string;
  /** Whole dollars. */
  price: number;
  inStock: boolean;
}

export interface Product {
  name: string;
  variants: readonly Variant[];
}

export interface OrderItem {
  id: string;
  /** The product's name and the variant's options. */
  product: string;
  options: string;
  price: number;
  state: 'ordered' | 'changed' | 'return requested' | 'exchange requested';
}

export interface Order {
  id: string;
  customer: string;
  status: 'pending' | 'shipped' | 'delivered' | 'cancelled';
  items: readonly OrderItem[];
  address: string;
  payment: string;
  tracking: string;
  refunds: readonly { amount: number; to: string }[];
}

export interface Customer {
  id: string;
  name: string;
  email: string;
  zip: string;
  address: string;
  /** Ways to pay, such as `visa`. */
  payments: readonly string[];
}

/** What writes change. */
export interface Shop {
  customers: readonly Customer[];
  orders: readonly Order[];
}

/** What is the same before and after. */
export type Catalogue = readonly Product[];

/** A change of the shop: the call that makes it. */
export type Write =
  | { name: 'cancel_order'; arguments: { order: string } }
  | { name: 'change_address'; arguments: { order: string; address: string } }
  | { name: 'change_payment'; arguments: { order: string; payment: string } }
  | { name: 'change_item'; arguments: { order: string; item: string; to: string } }
  | { name: 'return_item'; arguments: { order: string; item: string; payment: string } }
  | { name: 'exchange_item'; arguments: { order: string; item: string; to: string } }
  | { name: 'change_account_address'; arguments: { address: string } };

export const WRITES: readonly Write['name'][] = [
  'cancel_order',
  'change_address',
  'change_payment',
  'change_item',
  'return_item',
  'exchange_item',
  'change_account_address',
];

/** The shop after a write for a customer. Throws ToolRefusal for what the shop's rules do not allow. */
export function applyWrite(shop: Shop, catalogue: Catalogue, customer: string, write: Write): Shop {
  if (write.name === 'change_account_address') {
    const { address } = write.arguments;
    return {
      ...shop,
      customers: shop.customers.map((one) => (one.id === customer ? { ...one, address } : one)),
    };
  }
  const before = orderOf(shop, customer, write.arguments.order);
  const after = changedOrder(before, shop, catalogue, write);
  return { ...shop, orders: shop.orders.map((one) => (one === before ? after : one)) };
}

function changedOrder(
  order: Order,
  shop: Shop,
  catalogue: Catalogue,
  write: Exclude<Write, { name: 'change_account_address' }>,
): Order {
  switch (write.name) {
    case 'cancel_order':
      assertStatus(order, 'pending', 'cancelled');
      return {
        ...order,
        status: 'cancelled',
        refunds: [...order.refunds, { amount: totalOf(order), to: order.payment }],
      };
    case 'change_address':
      assertStatus(order, 'pending', 'sent elsewhere');
      return { ...order, address: write.arguments.address };
    case 'change_payment':
      assertStatus(order, 'pending', 'paid otherwise');
      assertPayment(shop, order, write.arguments.payment);
      return { ...order, payment: write.arguments.payment };
    case 'change_item': {
      assertStatus(order, 'pending', 'changed');
      const { item, to } = write.arguments;
      const other = otherVariant(catalogue, itemOf(order, item), to);
      return withItem(order, item, { ...other, state: 'changed' });
    }
    case 'return_item': {
      assertStatus(order, 'delivered', 'returned');
      const { item, payment } = write.arguments;
      assertPayment(shop, order, payment);
      const { price } = itemOf(order, item);
      return {
        ...withItem(order, item, { state: 'return requested' }),
        refunds: [...order.refunds, { amount: price, to: payment }],
      };
    }
    case 'exchange_item':
  }
  assertStatus(order, 'delivered', 'exchanged');
  const { item, to } = write.arguments;
  const other = otherVariant(catalogue, itemOf(order, item), to);
  return withItem(order, item, { ...other, state: 'exchange requested' });
}

/** A customer's order; nobody is told whether there is one of another. */
export function orderOf({ orders }: Shop, customer: string, id: string): Order {
  const order = orders.find((one) => one.id === id && one.customer === customer);
  if (order === undefined) throw new ToolRefusal(`the customer has no order ${id}`);
  return order;
}

/** An item that nothing has been done to yet. */
function itemOf(order: Order, id: string): OrderItem {
  const item = order.items.find((one) => one.id === id);
  if (item === undefined) throw new ToolRefusal(`order ${order.id} has no item ${id}`);
  if (item.state !== 'ordered') throw new ToolRefusal(`item ${id} is already ${item.state}`);
  return item;
}

function otherVariant(
  catalogue: Catalogue,
  { product, id }: OrderItem,
  to: string,
): Pick<OrderItem, 'id' | 'options' | 'price'> {
  const variant = catalogue.find(({ name }) => name === product)?.variants.find((one) => one.id === to);
  if (variant === undefined) throw new ToolRefusal(`${to} is no variant of the same product`);
  if (to === id) throw new ToolRefusal(`${to} is what the order has`);
  if (!variant.inStock) throw new ToolRefusal(`${to} is out of stock`);
  return { id: variant.id, options: variant.options, price: variant.price };
}

const withItem = (order: Order, id: string, change: Partial<OrderItem>): Order => ({
  ...order,
  items: order.items.map((item) => (item.id === id ? { ...item, ...change } : item)),
});

function assertStatus({ id, status }: Order, wanted: Order['status'], what: string): void {
  if (status !== wanted) throw new ToolRefusal(`order ${id} is ${status} and cannot be ${what}`);
}

function assertPayment({ customers }: Shop, { customer }: Order, payment: string): void {
  const known = customers.find(({ id }) => id === customer)!.payments;
  if (!known.includes(payment)) throw new ToolRefusal(`the customer pays by ${known.join(', ')}`);
}

export const totalOf = ({ items }: Pick<Order, 'items'>): number =>
  items.reduce((sum, { price }) => sum + price, 0);
