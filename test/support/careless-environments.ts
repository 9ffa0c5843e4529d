import { z } from 'zod';
import { sessionTool } from '../../environments/contract/environment.ts';
import type { Environment } from '../../environments/contract/environment.ts';
import { environmentReward } from '../../environments/verifiers/environment-reward.ts';
import { exactMatch } from '../../environments/verifiers/exact-match.ts';

// Environments with a mistake each that a person may make, and one without.

const careful: Environment = {
  name: 'careful',
  levels: [1],
  tools: [],
  verifiers: [exactMatch()],
  task: (ref) => ({ ref, prompt: `Repeat ${ref.split} ${ref.index}.`, answer: `${ref.split} ${ref.index}` }),
  demonstrate: ({ answer }) => ({ turns: [{ answer: answer! }], weight: 1 }),
  taskCount: () => 50,
};

let calls = 0;
const count = sessionTool({ name: 'count', description: 'Counts.', arguments: z.strictObject({}) });
const countsTwice: Environment['demonstrate'] = ({ answer }) => ({
  turns: [
    { call: { name: 'count', arguments: {} } },
    { call: { name: 'count', arguments: {} } },
    { answer: answer! },
  ],
  weight: 1,
});

export default [
  careful,
  {
    ...careful,
    name: 'by-chance',
    task: (ref) => ({ ref, prompt: `Repeat ${Math.random()}.`, answer: '1' }),
  },
  {
    ...careful,
    name: 'leaks',
    task: (ref) => ({ ref, prompt: `Repeat ${ref.index}.`, answer: `${ref.index}` }),
  },
  {
    ...careful,
    name: 'ends-early',
    task: (ref) => {
      if (ref.index > 40) throw new Error('no such row');
      return careful.task(ref);
    },
  },
  { ...careful, name: 'few', taskCount: (split) => (split === 'test' ? 0 : 3) },
  {
    ...careful,
    name: 'bad-expert',
    demonstrate: () => ({ turns: [{ answer: 'I do not know' }], weight: 1 }),
  },
  {
    ...careful,
    name: 'unknown-tool',
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'look', arguments: {} } }, { answer: answer! }],
      weight: 1,
    }),
  },
  // Its expert is told what it did not read.
  {
    ...careful,
    name: 'misquotes',
    tools: [count],
    sessions: { resume: 'replay', open: () => ({ act: () => 'call 1' }) },
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'count', arguments: {} }, observation: 'call one' }, { answer: answer! }],
      weight: 1,
    }),
  },
  // It counts in its process and not in its session, so that what is played again is something else.
  {
    ...careful,
    name: 'forgets',
    tools: [count],
    sessions: { resume: 'replay', open: () => ({ act: () => `call ${++calls}` }) },
    demonstrate: countsTwice,
  },
  // What an episode has done is in the module, and is lost where another one begins.
  {
    ...careful,
    name: 'shares',
    tools: [count],
    sessions: {
      resume: 'replay',
      open: () => {
        calls = 0;
        return { act: () => `call ${++calls}` };
      },
    },
    demonstrate: countsTwice,
  },
  {
    ...careful,
    name: 'told-unknown-tool',
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'look', arguments: {} }, observation: 'nothing' }, { answer: answer! }],
      weight: 1,
    }),
  },
  {
    ...careful,
    name: 'wrong-arguments',
    tools: [count],
    sessions: { resume: 'replay', open: () => ({ act: () => 'call' }) },
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'count', arguments: { to: 3 } } }, { answer: answer! }],
      weight: 1,
    }),
  },
  {
    ...careful,
    name: 'pays-ten',
    tools: [count],
    verifiers: [environmentReward()],
    sessions: { resume: 'replay', open: () => ({ act: () => ({ text: 'call', reward: 10 }) }) },
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'count', arguments: {} } }, { answer: answer! }],
      weight: 1,
    }),
  },
  {
    ...careful,
    name: 'waits',
    tools: [{ ...count, name: 'wait', limits: { timeoutSeconds: 0.5 } }],
    sessions: { resume: 'replay', open: () => ({ act: () => new Promise(() => undefined) }) },
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'wait', arguments: {} } }, { answer: answer! }],
      weight: 1,
    }),
  },
  {
    ...careful,
    name: 'shows-html',
    verifiers: [
      exactMatch(),
      {
        name: 'reader',
        version: '1',
        tier: 'world',
        cost: { seconds: 60, usd: 0 },
        subject: ({ answer }) => ({ answer }),
        served: { by: 'people' },
      },
    ],
    present: () => '<b>an answer</b>' as never,
  },
  {
    ...careful,
    name: 'throws',
    taskCount: (split) => {
      if (split === 'test') throw new Error('no test');
      return 50;
    },
    tools: [count],
    sessions: {
      resume: 'replay',
      open: () => ({
        act: () => {
          throw new Error('boom');
        },
      }),
    },
    demonstrate: ({ answer }) => ({
      turns: [{ call: { name: 'count', arguments: {} } }, { answer: answer! }],
      weight: 1,
    }),
  },
] satisfies Environment[] as Environment[];
