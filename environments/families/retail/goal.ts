import type { Json } from '../../../core/json/json.ts';
import type { Task } from '../../contract/environment.ts';
import type { Catalogue, Shop, Write } from './shop.ts';

/** One thing that a customer wants, in the order in which she comes to it. */
export interface CustomerWish {
  /** Her words. */
  said: string;
  /** What is to be done; null for what the shop's rules forbid, which she is to be told. */
  write: Write | null;
  /** What is forbidden is forbidden for this order. */
  order?: string;
  /** What she asks to be told, as it must be written: `$24`, `T58213`. */
  fact?: string;
}

/** All that is behind a task. The policy sees none of it but by its tools. */
export interface Goal {
  shop: Shop;
  catalogue: Catalogue;
  /** Id of the customer. */
  customer: string;
  /** The shop knows from the beginning who it is. */
  signedIn: boolean;
  wishes: readonly CustomerWish[];
}

export const goalOf = (task: Task): Goal => task.info as unknown as Goal;
export const infoOf = (goal: Goal): Json => goal as unknown as Json;

export const customerOf = ({ shop, customer }: Goal) => shop.customers.find(({ id }) => id === customer)!;
