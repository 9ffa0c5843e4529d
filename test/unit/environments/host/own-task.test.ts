import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Observation } from '../../../../core/episode/episode.ts';
import { defineTool, sessionTool } from '../../../../environments/contract/environment.ts';
import type { Environment, Task } from '../../../../environments/contract/environment.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { playCalls } from '../../../support/play-calls.ts';

// The episodes of a group have one task. What one of them does to it no other one may meet.

const ref = { environment: 'counter', split: 'train', level: 1, index: 0 } as const;
const calls = [
  { name: 'count', arguments: {} },
  { name: 'count', arguments: {} },
];

/** Counts in what the task brought: one more each time. */
const counted = (task: Task): string => String(++(task.info as { count: number }).count);

const described = { name: 'count', description: 'Counts.', arguments: z.object({}) };

function counter(ways: Pick<Environment, 'tools' | 'sessions'>): Environment {
  const calculator = calculatorEnvironment('counter');
  const task: Task = { ref, prompt: 'count', info: { count: 0 } };
  return { ...calculator, ...ways, task: () => task };
}

async function texts(environment: Environment): Promise<string[]> {
  const { observations } = await playCalls(environment, calls, { task: ref });
  return observations.map(({ text }: Observation) => text);
}

test('a session that counts in its task begins anew in the next episode', async () => {
  const environment = counter({
    tools: [sessionTool(described)],
    sessions: { resume: 'replay', open: (task) => ({ act: () => counted(task) }) },
  });
  for (let episode = 0; episode < 3; episode++) expect(await texts(environment)).toEqual(['1', '2']);
});

test('what a tool changes in the task that it asks for, the next call does not find', async () => {
  const tool = defineTool({
    ...described,
    placement: 'inline',
    effect: 'pure',
    cost: { seconds: 0, usd: 0 },
    run: async (_, context) => counted(await context.task()),
  });
  const environment = counter({ tools: [tool] });
  for (let episode = 0; episode < 3; episode++) expect(await texts(environment)).toEqual(['1', '1']);
});
