import { appendFileSync } from 'node:fs';
import { z } from 'zod';
import { defineTool, sessionTool } from '../../environments/contract/environment.ts';
import type { Environment } from '../../environments/contract/environment.ts';
import { exactMatch } from '../../environments/verifiers/exact-match.ts';

// Environments with tools that must be called once only. Each call leaves a line in the file that SENT_TO names.

const sent = (what: string): void => {
  const file = process.env['SENT_TO'];
  if (file !== undefined) appendFileSync(file, `${what}\n`);
};

const once = { effect: 'once', placement: 'long', arguments: z.strictObject({}) } as const;

const send = defineTool({
  ...once,
  name: 'send',
  description: 'Sends a mail.',
  cost: { seconds: 0, usd: 0 },
  run: () => {
    sent('send');
    return 'sent';
  },
});

const order = sessionTool({ ...once, name: 'order', description: 'Orders.' });
const look = sessionTool({ name: 'look', description: 'Looks.', arguments: z.strictObject({}) });

const mails: Environment = {
  name: 'mails',
  levels: [1],
  tools: [send],
  verifiers: [exactMatch()],
  task: (ref) => ({ ref, prompt: `Send ${ref.split} ${ref.index}.`, answer: `${ref.split} ${ref.index}` }),
  demonstrate: ({ answer }) => ({
    turns: [{ call: { name: 'send', arguments: {} } }, { answer: answer! }],
    weight: 1,
  }),
  taskCount: () => 50,
};

/** A session that counts what was ordered. */
const ordered = { resume: 'fold', open: () => 0, act: act } as const;
function act(count: number, { name }: { name: string }): { state: number; did: string } {
  if (name === 'look') return { state: count, did: `${count} ordered` };
  sent('order');
  return { state: count + 1, did: `order ${count + 1}` };
}

export default [
  mails,
  // The demonstration says what the tool answers, as a supervised stage needs it.
  {
    ...mails,
    name: 'told-mails',
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'send', arguments: {} }, observation: 'sent' }, { answer: answer! }],
      weight: 1,
    }),
  },
  // What the expert reads after the order depends on it.
  {
    ...mails,
    name: 'orders',
    tools: [order, look],
    sessions: ordered,
    demonstrate: ({ answer }) => ({
      turns: [
        { call: { name: 'look', arguments: {} } },
        { call: { name: 'order', arguments: {} }, observation: 'order 1' },
        { call: { name: 'look', arguments: {} }, observation: '1 ordered' },
        { answer: answer! },
      ],
      weight: 1,
    }),
  },
  // Its sessions come back by their calls, the order among them.
  {
    ...mails,
    name: 'orders-again',
    tools: [order],
    sessions: { ...ordered, resume: 'replay', open: () => ({ act: () => (sent('order'), 'ordered') }) },
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'order', arguments: {} }, observation: 'ordered' }, { answer: answer! }],
      weight: 1,
    }),
  },
] satisfies Environment[] as Environment[];
