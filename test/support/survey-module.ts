import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { callByCall, defineEnvironment, defineTool, z } from '../../index.ts';
import type { ToolContext } from '../../index.ts';

// Two places are to be measured, and one to be noted in between, all in one turn: calls of long and of inline tools. For
// workers that are started with this module in GRADUS_ENVIRONMENTS. What each attempt at a call lived through goes into the
// file GRADUS_TEST_CALLS, a line of JSON each.

export interface SurveyCall {
  /** The idempotency key. */
  call: string;
  attempt: number;
  event: 'start' | 'end';
}

const PLACES = ['hill', 'lake', 'moor', 'ford'] as const;
const placesOf = (index: number) => [PLACES[index % 4]!, PLACES[(index + 1 + (index >> 2)) % 4]!] as const;

const file = () => process.env['GRADUS_TEST_CALLS']!;
const note = (event: SurveyCall) => appendFile(file(), `${JSON.stringify(event)}\n`);

/**
 * In the first step of a run whose name begins with `second` or `third`, that call of a turn waits until the file `.release` is
 * there: the inline one, or the long one behind it.
 */
async function held(context: ToolContext): Promise<void> {
  const { idempotencyKey, attempt, signal } = context;
  if (attempt > 1 || !/^(?:second[^/]*\/rl\/1\/.*\.2|third[^/]*\/rl\/1\/.*\.3)$/u.test(idempotencyKey))
    return;
  for (let beat = 0; !existsSync(`${file()}.release`); beat++) {
    context.heartbeat(beat);
    await wait(50, undefined, { signal });
  }
}

const given = z.strictObject({ place: z.string() });
const about = { arguments: given, cost: { seconds: 0, usd: 0 } };

export default defineEnvironment({
  name: 'survey',
  levels: [1],
  tools: [
    defineTool({
      ...about,
      name: 'measure',
      description: 'Measures a place.',
      placement: 'long',
      effect: 'idempotent',
      limits: { heartbeatSeconds: 30 },
      run: async ({ place }, context) => {
        const { idempotencyKey: call, attempt } = context;
        await note({ call, attempt, event: 'start' });
        await held(context);
        await note({ call, attempt, event: 'end' });
        return `${place}: ${place.length}`;
      },
    }),
    defineTool({
      ...about,
      name: 'note',
      description: 'Notes a place.',
      placement: 'inline',
      effect: 'idempotent',
      limits: { timeoutSeconds: 60 },
      run: async ({ place }, context) => {
        const { idempotencyKey: call, attempt } = context;
        await note({ call, attempt, event: 'start' });
        await held(context);
        await note({ call, attempt, event: 'end' });
        return `noted ${place}`;
      },
    }),
  ],
  verifiers: [
    {
      name: 'surveyed',
      version: '1',
      tier: 'fast',
      cost: { seconds: 0, usd: 0 },
      verify: ({ task, episode }) => {
        const made = episode.turns
          .flatMap(callByCall)
          .flatMap(({ action, observation }) =>
            action.kind === 'call' && observation?.error === undefined ? [JSON.stringify(action.call)] : [],
          );
        const wanted = task.calls!.map((call) => JSON.stringify(call));
        return { kind: 'score', score: wanted.filter((call) => made.includes(call)).length / wanted.length };
      },
    },
  ],
  task: (ref) => {
    const [one, other] = placesOf(ref.index);
    const calls = [
      { name: 'measure', arguments: { place: one } },
      { name: 'note', arguments: { place: one } },
      { name: 'measure', arguments: { place: other } },
    ];
    return { ref, prompt: `Survey ${one} and ${other}.`, calls };
  },
  demonstrate: ({ calls }) => ({
    weight: 1,
    turns: [
      {
        calls: calls!.map((call) => {
          const { place } = call.arguments as { place: string };
          return {
            ...call,
            observation: call.name === 'note' ? `noted ${place}` : `${place}: ${place.length}`,
          };
        }),
      },
      { answer: 'surveyed' },
    ],
  }),
  taskCount: () => 16,
});
