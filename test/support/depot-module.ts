import { existsSync } from 'node:fs';
import { appendFile, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { defineEnvironment, defineTool, sessionTool, z } from '../../index.ts';

// Boxes are packed in a session, and letters are sent that must be sent once only, for workers that are started with this module
// in GRADUS_ENVIRONMENTS. Each letter that is really sent is a line of the file GRADUS_TEST_CALLS: its key. While the file `.hold`
// is there, letters wait; where it says a number, as many of the first letters of a run's step do not.

const file = () => process.env['GRADUS_TEST_CALLS']!;

/** Keys of the letters that a run has really sent in its step, in their order. */
export async function sentBy(run: string, letters = file()): Promise<string[]> {
  const lines = (await readFile(letters, 'utf8')).split('\n');
  return lines.filter((line) => line.startsWith(`${run}/rl/`));
}

async function mustWait(key: string): Promise<boolean> {
  const [hold, sent] = await Promise.all([
    readFile(`${file()}.hold`, 'utf8').catch(() => undefined),
    sentBy(key.split('/')[0]!),
  ]);
  return hold === '' || (hold !== undefined && sent.indexOf(key) >= Number(hold));
}

interface Depot {
  packed: string[];
}

export default defineEnvironment({
  name: 'depot',
  levels: [1],
  tools: [
    sessionTool({
      name: 'pack',
      description: 'Packs a thing into the box.',
      arguments: z.strictObject({ thing: z.string() }),
    }),
    defineTool({
      name: 'send',
      description: 'Sends a letter.',
      arguments: z.strictObject({ to: z.string() }),
      placement: 'long',
      effect: 'once',
      cost: { seconds: 0, usd: 0 },
      limits: { heartbeatSeconds: 30 },
      run: async ({ to }, context) => {
        const { idempotencyKey, signal } = context;
        await appendFile(file(), `${idempotencyKey}\n`);
        if (await mustWait(idempotencyKey))
          for (let beat = 0; existsSync(`${file()}.hold`); beat++) {
            context.heartbeat(beat);
            await wait(50, undefined, { signal });
          }
        return `sent to ${to}`;
      },
    }),
  ],
  verifiers: [
    {
      name: 'packed',
      version: '1',
      tier: 'fast',
      cost: { seconds: 0, usd: 0 },
      verify: ({ episode }) => {
        const { packed } = episode.session!.state as unknown as Depot;
        return { kind: 'score', score: Math.min(1, packed.length / 4) };
      },
    },
  ],
  sessions: {
    resume: 'fold',
    open: (): Depot => ({ packed: [] }),
    act: ({ packed }: Depot, { arguments: given }) => {
      const { thing } = given as { thing: string };
      return { state: { packed: [...packed, thing] }, did: `${packed.length + 1} packed` };
    },
  },
  task: (ref) => ({ ref, prompt: `Pack for house ${ref.index % 4}.` }),
  demonstrate: ({ ref }) => ({ weight: 1, turns: [{ answer: 'packed'.slice(0, 1 + (ref.index % 6)) }] }),
  taskCount: () => 64,
});
