import { z } from 'zod';
import { sessionTool, type Tool } from '../../contract/environment.ts';

/** Longest message to the customer, characters. */
const LONGEST_MESSAGE = 300;

const short = (what: string) => z.string().max(80).describe(what);
const order = short('Id of an order of the customer');
const item = short('Id of an item of the order');
const to = short('Id of a variant of the same product');
const payment = short('A way to pay that the customer has');
const address = short('Street and number, like 5 Oak Street');

const tool = (name: string, description: string, fields: Record<string, z.ZodType> = {}): Tool =>
  sessionTool({ name, description, arguments: z.strictObject(fields) });

export const retailTools: readonly Tool[] = [
  tool('say', 'Says something to the customer, and gives the answer.', {
    text: z.string().max(LONGEST_MESSAGE).describe('What to say'),
  }),
  tool('find_customer_by_email', 'Finds the customer.', { email: short('E-mail address') }),
  tool('find_customer_by_name', 'Finds the customer.', {
    name: short('First and last name'),
    zip: short('Zip code'),
  }),
  tool('get_customer', 'The account of the customer.'),
  tool('list_orders', 'The orders of the customer, with their status.'),
  tool('get_order', 'All of an order: status, items, payment, address and tracking.', { order }),
  tool('list_products', 'Names of all products.'),
  tool('get_product', 'The variants of a product, with their prices.', {
    name: short('Name of the product'),
  }),
  tool('calculate', 'One operation on two whole numbers, like 12+7.', { expression: short('Like 12+7') }),
  tool('cancel_order', 'Cancels a pending order, and pays back.', { order }),
  tool('change_address', 'Sends a pending order elsewhere.', { order, address }),
  tool('change_payment', 'Has a pending order paid otherwise.', { order, payment }),
  tool('change_item', 'Changes an item of a pending order for another variant.', { order, item, to }),
  tool('return_item', 'Takes an item of a delivered order back, and pays its price back.', {
    order,
    item,
    payment,
  }),
  tool('exchange_item', 'Exchanges an item of a delivered order for another variant.', { order, item, to }),
  tool('change_account_address', "Changes the address of the customer's account, and of no order.", {
    address,
  }),
  tool('transfer', 'Hands over to a person and ends the conversation: where nothing else helps.'),
];

/** What the desk goes by; part of the prompt of the levels that are worth a model that can read. */
export const POLICY = `You serve the customers of a shop, by tools.
- Find the customer by e-mail, or by name and zip code, before anything else. Serve this customer alone.
- A pending order can be cancelled, sent elsewhere, paid otherwise, and have items changed for other variants of the same product, each item once. Of a delivered order, items can be returned or exchanged, each once. To other orders nothing can be done; say so, with the order's id.
- What is paid back for a returned item goes to the payment that the customer wants, and to the order's own unless he says so.
- Before each change say in one message what you are going to do: what it is, the ids of the order and the items, and every new value. Do it only after a yes. Offer nothing that was not asked for.
- Where the customer asks for an amount or a tracking number, say it in a message with no other: amounts like $24.
- When a wish is fulfilled, ask whether there is anything else. When there is nothing, answer, which ends the conversation.`;
