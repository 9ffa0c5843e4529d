/** `npm run setup:sandbox`: bubblewrap, found or fetched, and what of the sandboxes works here. */
import { messageOf } from '../../core/errors.ts';
import { findBubblewrap } from '../../environments/sandbox/bubblewrap/find.ts';
import { sandboxFacts } from '../../environments/sandbox/open-sandbox.ts';
import { ensureBubblewrap } from './sandbox.ts';

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

try {
  const before = await findBubblewrap();
  if ('missing' in before) say(`bubblewrap: ${await ensureBubblewrap(say)}`);
  const facts = await sandboxFacts();
  for (const { name, works, missing } of facts) say(`${name}: ${works ? 'works' : missing}`);
  if (!facts.some(({ works }) => works)) process.exitCode = 1;
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}
