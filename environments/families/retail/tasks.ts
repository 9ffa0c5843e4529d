import { GradusError } from '../../../core/errors.ts';
import { RandomStream } from '../../../core/random.ts';
import type { Split, TaskRef } from '../../../core/refs.ts';
import { splitOfProblem } from '../../contract/generated-tasks.ts';
import type { Goal, CustomerWish } from './goal.ts';
import { LEVELS, type Level } from './levels.ts';
import { totalOf, type Customer, type Order, type OrderItem, type Product, type Write } from './shop.ts';

const FIRST_NAMES = ['Ana', 'Tom', 'Mia', 'Leo', 'Eva', 'Sam', 'Ida', 'Max'];
const LAST_NAMES = ['Berg', 'Costa', 'Duval', 'Evans', 'Fischer', 'Greco', 'Hansen', 'Ito'];
const STREETS = ['Oak Street', 'Lake Road', 'Mill Lane', 'High Street', 'Park Row', 'Hill Road'];
const PAYMENTS = ['visa', 'paypal', 'gift card', 'bank'];
const PRODUCTS = ['lamp', 'mug', 'chair', 'shirt', 'clock', 'backpack', 'kettle', 'blanket'];
const COLOURS = ['red', 'blue', 'green', 'black', 'white'];
const SIZES = ['small', 'medium', 'large'];

/** How many conversations have a wish that cannot be, of the level where they may. */
const FORBIDDEN = 0.8;

/** The split that an order's id belongs to: no order of one split is in a task of another. */
const splitOf = (order: string): Split => splitOfProblem('retail', order);

/** What is behind a task; the same for the same coordinates. */
export function goalAt({ split, level, index }: TaskRef): Goal {
  const shape = LEVELS.find((one) => one.level === level);
  if (shape === undefined || !Number.isSafeInteger(index) || index < 0) {
    throw new GradusError(
      'environment',
      'task',
      `retail has no task ${index} at level ${level}; levels are ${LEVELS.map((one) => one.level).join(', ')} and indexes whole numbers from 0.`,
    );
  }
  const draw = new Draw(shape, split, index);
  return shape.whole ? wholeShop(shape, draw) : oneOrder(shape, draw);
}

/** Draws that no two things of a task share. */
class Draw extends RandomStream {
  private readonly taken = new Set<string>();
  private readonly digits: number;
  private readonly split: Split;

  constructor({ level, digits }: Level, split: Split, index: number) {
    super('retail', 'task', split, level, index);
    this.digits = digits;
    this.split = split;
  }

  /** A number of so many digits that is the id of nothing else. */
  id(digits: number): string {
    for (;;) {
      const id = String(this.int(10 ** (digits - 1), 10 ** digits - 1));
      if (this.taken.has(id)) continue;
      this.taken.add(id);
      return id;
    }
  }

  orderId(): string {
    for (;;) {
      const id = this.id(this.digits);
      if (splitOf(id) === this.split) return id;
    }
  }

  some<T>(items: readonly T[], count: number): T[] {
    return this.shuffle([...items]).slice(0, count);
  }

  address(): string {
    return `${this.int(1, 99)} ${this.pick(STREETS)}`;
  }

  /** Where something is to go that now goes elsewhere: what changes nothing would be done by doing nothing. */
  otherAddress(now: string): string {
    for (;;) {
      const address = this.address();
      if (address !== now) return address;
    }
  }

  customer(id: string, but?: Customer): Customer {
    const first = this.pick(FIRST_NAMES.filter((name) => !but?.name.startsWith(name)));
    const last = this.pick(LAST_NAMES);
    return {
      id,
      name: `${first} ${last}`,
      email: `${first}.${last}${this.int(1, 99)}@mail.com`.toLowerCase(),
      zip: String(this.int(10_000, 99_999)),
      address: this.address(),
      payments: this.some(PAYMENTS, this.int(2, 3)),
    };
  }
}

/** Small levels: one order with one item, of a customer whom the shop knows. */
function oneOrder(shape: Level, draw: Draw): Goal {
  const customer = { ...draw.customer('1'), payments: PAYMENTS };
  const item: OrderItem = {
    id: draw.id(2),
    product: draw.pick(PRODUCTS),
    options: '',
    price: draw.int(5, 99),
    state: 'ordered',
  };
  const order: Order = {
    id: draw.orderId(),
    customer: customer.id,
    status: draw.pick(['pending', 'delivered'] as const),
    items: [item],
    address: customer.address,
    payment: draw.pick(PAYMENTS),
    tracking: '',
    refunds: [],
  };
  const wish = shape.first === 'told' ? statedWish(order, draw) : unwanted(order, shape.asks, draw);
  return {
    shop: { customers: [customer], orders: [order] },
    catalogue: [],
    customer: '1',
    signedIn: true,
    wishes: [wish],
  };
}

/** One change of which the customer says all. */
function statedWish(order: Order, draw: Draw): CustomerWish {
  const { id } = order;
  const item = order.items[0]!.id;
  if (order.status === 'delivered') {
    const payment = draw.pick(PAYMENTS);
    return {
      said: `Return item ${item} of order ${id} to ${payment}.`,
      write: { name: 'return_item', arguments: { order: id, item, payment } },
    };
  }
  const kind = draw.pick(['cancel', 'address', 'payment'] as const);
  if (kind === 'cancel') return { said: `Cancel order ${id}.`, write: cancel(id) };
  if (kind === 'address') {
    const address = draw.otherAddress(order.address);
    return {
      said: `Send order ${id} to ${address}.`,
      write: { name: 'change_address', arguments: { order: id, address } },
    };
  }
  const payment = draw.pick(PAYMENTS.filter((one) => one !== order.payment));
  return {
    said: `Pay order ${id} by ${payment}.`,
    write: { name: 'change_payment', arguments: { order: id, payment } },
  };
}

const cancel = (order: string): Write => ({ name: 'cancel_order', arguments: { order } });

/** A customer who does not want what she has ordered: whether that is cancelled or returned depends on where it is. */
function unwanted({ id, items, status, payment }: Order, asks: boolean, draw: Draw): CustomerWish {
  const [{ id: item, price }] = items as [OrderItem];
  const words = draw.pick(['I do not want order', 'I no longer need order', 'Take back order']);
  return {
    said: `${words} ${id}.${asks ? ' What do I get back?' : ''}`,
    write:
      status === 'pending' ? cancel(id) : { name: 'return_item', arguments: { order: id, item, payment } },
    ...(asks && { fact: `$${price}` }),
  };
}

/** A shop of two customers; the one has several orders, of which she remembers what was in them. */
function wholeShop(shape: Level, draw: Draw): Goal {
  const catalogue = draw.some(PRODUCTS, PRODUCTS.length).map((name): Product => {
    const looks = draw
      .some(COLOURS, 2)
      .flatMap((colour) => draw.some(SIZES, 2).map((size) => `${colour}, ${size}`));
    return {
      name,
      variants: looks.map((options) => ({
        id: draw.id(4),
        options,
        price: draw.int(5, 199),
        inStock: draw.uniform() < 0.8,
      })),
    };
  });
  const customer = draw.customer('1');
  const customers = [customer, draw.customer('2', customer)];
  // A product is in one order of hers alone, so that its name says which.
  const products = draw.shuffle([...catalogue]);
  const sizes = draw.shuffle([2, 2, 2, 1, 1]);
  const anyStatus = (): Order['status'] => draw.pick(['pending', 'delivered', 'shipped'] as const);
  const hers: Order['status'][] = draw.shuffle(['pending', 'delivered', 'shipped', anyStatus(), anyStatus()]);
  const statuses: Order['status'][] = [...hers, 'pending', 'delivered'];
  const orders = statuses.map((status, i): Order => {
    const mine = i < hers.length;
    const its = mine ? products.splice(0, sizes[i]) : draw.some(catalogue, 2);
    const owner = mine ? customers[0]! : customers[1]!;
    return {
      id: draw.orderId(),
      customer: owner.id,
      status,
      items: its.map(({ name, variants }): OrderItem => {
        const { id, options, price } = draw.pick(variants);
        return { id, product: name, options, price, state: 'ordered' };
      }),
      address: owner.address,
      payment: draw.pick(owner.payments),
      tracking: status === 'pending' ? '' : `T${draw.id(6)}`,
      refunds: [],
    };
  });
  const own = orders.filter((order) => order.customer === customer.id);
  const pending = draw.pick(own.filter(({ status }) => status === 'pending'));
  const delivered = draw.pick(own.filter(({ status }) => status === 'delivered'));
  const settled = own.filter((order) => order.status !== 'pending' && order !== delivered);
  const possible = draw.shuffle([
    pendingWish(pending, customer, catalogue, draw),
    deliveredWish(delivered, customer, catalogue, draw),
    accountWish(customer, draw),
  ]);
  const forbids = shape.forbidden && draw.uniform() < FORBIDDEN;
  const wishes = possible.slice(0, forbids ? shape.wishes - 1 : shape.wishes);
  if (forbids) wishes.splice(draw.int(0, wishes.length), 0, forbiddenWish(draw.pick(settled), draw));
  return { shop: { customers, orders }, catalogue, customer: '1', signedIn: false, wishes };
}

/** A variant that an item could be exchanged for, if there is one. */
const alternative = (catalogue: readonly Product[], { product, id }: OrderItem, draw: Draw) => {
  const variants = catalogue.find(({ name }) => name === product)!.variants;
  const others = variants.filter((one) => one.id !== id && one.inStock);
  return others.length === 0 ? undefined : draw.pick(others);
};

function pendingWish(
  order: Order,
  customer: Customer,
  catalogue: readonly Product[],
  draw: Draw,
): CustomerWish {
  const item = draw.pick(order.items);
  const other = alternative(catalogue, item, draw);
  const kind = draw.pick(['cancel', 'address', 'payment', 'item'] as const);
  if (kind === 'address') {
    const address = draw.otherAddress(order.address);
    return {
      said: `The order with the ${item.product} should go to ${address}, please.`,
      write: { name: 'change_address', arguments: { order: order.id, address } },
    };
  }
  if (kind === 'payment') {
    const payment = draw.pick(customer.payments.filter((one) => one !== order.payment));
    return {
      said: `I would rather pay for the order with the ${item.product} by ${payment}.`,
      write: { name: 'change_payment', arguments: { order: order.id, payment } },
    };
  }
  if (kind === 'item' && other !== undefined) {
    return {
      said: `I ordered a ${item.product}, and would rather have it ${other.options}. What does that one cost?`,
      write: { name: 'change_item', arguments: { order: order.id, item: item.id, to: other.id } },
      fact: `$${other.price}`,
    };
  }
  return {
    said: `I no longer want the order with the ${item.product}. How much do I get back for all of it?`,
    write: cancel(order.id),
    fact: `$${totalOf(order)}`,
  };
}

function deliveredWish(
  order: Order,
  customer: Customer,
  catalogue: readonly Product[],
  draw: Draw,
): CustomerWish {
  const item = draw.pick(order.items);
  const other = alternative(catalogue, item, draw);
  if (other !== undefined && draw.uniform() < 0.5) {
    return {
      said: `The ${item.product} that I have got should be ${other.options}. Can you swap it? Also tell me the tracking number of that order.`,
      write: { name: 'exchange_item', arguments: { order: order.id, item: item.id, to: other.id } },
      fact: order.tracking,
    };
  }
  const payment = draw.pick(customer.payments);
  return {
    said: `I do not like the ${item.product} that I have got. I want my money back, to ${payment}. How much is it?`,
    write: { name: 'return_item', arguments: { order: order.id, item: item.id, payment } },
    fact: `$${item.price}`,
  };
}

function accountWish(customer: Customer, draw: Draw): CustomerWish {
  const address = draw.otherAddress(customer.address);
  return {
    said: `I have moved: my account should have ${address} as my address.`,
    write: { name: 'change_account_address', arguments: { address } },
  };
}

/** What is on its way, or has come, can be neither cancelled nor sent elsewhere. */
function forbiddenWish(order: Order, draw: Draw): CustomerWish {
  const { product } = draw.pick(order.items);
  return {
    said: draw.pick([
      `Please cancel the order with the ${product}.`,
      `The order with the ${product} should go to ${draw.otherAddress(order.address)} instead.`,
    ]),
    write: null,
    order: order.id,
  };
}
