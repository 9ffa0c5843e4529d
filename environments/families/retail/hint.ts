import type { Candidate } from '../../contract/environment.ts';
import { writeKey } from './customer.ts';
import { openDesk, type Desk } from './desk.ts';
import { goalOf } from './goal.ts';
import { checksOf } from './verifier.ts';

/**
 * What the verifier found amiss, and what to do about it: no id, no value and no change that is wanted. Null where nothing is
 * amiss.
 */
export function hint({ task, episode, answer }: Candidate): string | null {
  const goal = goalOf(task);
  const desk = (episode.session?.state as unknown as Desk | undefined) ?? openDesk(goal);
  const checks = checksOf(goal, desk, answer);
  const wanted = goal.wishes.flatMap(({ write }) => (write === null ? [] : [writeKey(write)]));
  const done = desk.wrote.map(({ write }) => write);
  const said: string[] = [];
  if (desk.signedIn === null) said.push('The customer was never found.');
  if (!checks.consent) said.push('Something was changed before the customer had said yes to all of it.');
  if (done.some((write) => !wanted.includes(write)))
    said.push('Something was changed that the customer does not want.');
  if (wanted.some((write) => !done.includes(write)))
    said.push('A change that the customer wants was not made: look up what it is about, and offer it.');
  if (desk.mood.uttered < goal.wishes.length)
    said.push('She did not come to all of her wishes: ask whether there is anything else.');
  if (!checks.facts) said.push('What she asked to be told was not told, or not alone.');
  if (!checks.refusals) said.push('What cannot be is to be said of its order, and of no other.');
  if (!checks.ended) said.push('The conversation did not come to its end: answer when nothing is left.');
  return said.length === 0 ? null : said.join(' ');
}
