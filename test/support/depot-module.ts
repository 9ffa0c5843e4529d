import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { defineEnvironment, defineTool, sessionTool, z } from '../../index.ts';

// Boxes are packed in a session, and letters are sent that must be sent once only, for workers that are started with this module
// in GRADUS_ENVIRONMENTS. Each letter that is really sent is a line of the file GRADUS_TEST_CALLS: its key. Letters wait while
// the file `.hold` is there.

const file = () => process.env['GRADUS_TEST_CALLS']!;

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
