import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { calculate, calculatorTool } from '../../environments/families/calculator/tool.ts';
import { defineTool } from '../../environments/contract/environment.ts';
import type {
  Environment,
  PlainEnvironment,
  FastVerifier,
  SubjectBlock,
  TierVerifier,
  Tool,
  ToolContext,
} from '../../environments/contract/environment.ts';

// Calculators whose tools and verifiers do what they should not, for hosts and workers that are started with this
// module in GRADUS_ENVIRONMENTS. `hostile-KIND` does it to calls whose idempotency key names the first group of the
// first step of a stage called `rl`, or to a first sample; to all others it is a calculator.

type Run = (expression: string, context: ToolContext) => unknown;

const forEver = (): never => {
  for (;;);
};
/** Soon enough on a busy machine, where what takes long counts as hung before it takes much. */
const heapBomb = (): never => {
  const full = Array.from({ length: 1e6 }, (_, i) => i + 0.5);
  for (const kept: number[][] = []; ;) kept.push([...full]);
};
const bufferBomb = async (): Promise<never> => {
  for (const kept: Buffer[] = []; ; await wait(5)) kept.push(Buffer.alloc(32 * 2 ** 20, 1));
};

const isUnlucky = ({ idempotencyKey }: ToolContext): boolean => /\/rl\/1\/0\//.test(idempotencyKey);

function tool(run: Run, over: Partial<Tool> = {}): Tool {
  const { arguments: shape, name, description } = calculatorTool;
  return defineTool({
    name,
    description,
    arguments: shape,
    placement: 'inline',
    effect: 'pure',
    cost: { seconds: 0, usd: 0 },
    ...over,
    // As long as a machine may keep a process waiting that does nothing wrong; those that hang have less.
    limits: { timeoutSeconds: 10, heartbeatSeconds: 1, maxAttempts: 2, ...over.limits },
    run: (args, context) => {
      const { expression } = args as { expression: string };
      return (isUnlucky(context) ? run(expression, context) : calculate(expression)) as string;
    },
  });
}

const SECOND = { limits: { timeoutSeconds: 1 } };
const long = { placement: 'long', effect: 'idempotent', ...SECOND } as const;

const tools: Record<string, Tool> = {
  spin: tool(forEver, { limits: { timeoutSeconds: 3 } }),
  heap: tool(heapBomb, { limits: { timeoutSeconds: 60 } }),
  buffers: tool(bufferBomb, { limits: { timeoutSeconds: 60 } }),
  exit: tool(() => process.exit(3)),
  abort: tool(() => process.abort()),
  hang: tool(() => new Promise(() => undefined), SECOND),
  late: tool((expression) => {
    void Promise.reject(new Error('nobody waits for this'));
    setTimeout(() => {
      throw new Error('nor for this');
    }, 5);
    return calculate(expression);
  }),
  'late-often': tool((expression) => {
    for (let i = 0; i < 1000; i++) void Promise.reject(new Error(`rejection ${i}`));
    return calculate(expression);
  }),
  // As programs say that they are up to whoever has started them.
  ready: tool((expression) => {
    process.send?.({ type: 'ready' });
    return calculate(expression);
  }),
  descriptor: tool((expression) => {
    writeSync(3, 'no message\n');
    return calculate(expression);
  }),
  'no-promise': tool((expression) => {
    const { Promise: real } = globalThis;
    globalThis.Promise = {} as never;
    void real.resolve().then(() => undefined);
    return calculate(expression);
  }),
  'odd-error': tool(() => {
    throw new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error('look away');
        },
      },
    );
  }),
  'fake-damage': tool(() => {
    throw new GradusError('store', 'damaged', 'x'.repeat(10e6));
  }),
  child: tool((_, context) => {
    context.heartbeat(spawn('sleep', ['60']).pid);
    return wait(50).then(() => process.exit(3));
  }),
  arguments: tool((expression) => calculate(expression), {
    ...SECOND,
    arguments: z.strictObject({ expression: z.string().refine(() => new Promise<boolean>(() => undefined)) }),
  }),
  huge: tool(() => 'x'.repeat(10e6)),
  'no-text': tool(() => ({ answer: 42 })),
  environment: tool(() => JSON.stringify(process.env), { limits: { maxOutputCharacters: 100_000 } }),
  'long-spin': tool(forEver, long),
  'long-exit': tool(() => process.exit(3), long),
  'long-silent': tool(() => wait(60_000, '', { ref: false }), {
    ...long,
    limits: { timeoutSeconds: 60 },
  }),
  'pid-spin': tool(
    async (_, context) => {
      context.heartbeat(process.pid);
      await wait(50);
      return forEver();
    },
    { limits: { timeoutSeconds: 60 } },
  ),
  'once-exit': tool(() => process.exit(3), { ...long, effect: 'once' }),
};

function verifier(verify: FastVerifier['verify']): FastVerifier {
  return {
    name: 'odd',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: (candidate, context) => {
      if (candidate.episode.turns.length > 1) return { kind: 'score', score: 1 };
      return verify(candidate, context);
    },
  };
}

const verifiers: Record<string, FastVerifier> = {
  'verifier-spin': verifier(forEver),
  'verifier-exit': verifier(() => process.exit(3)),
  'verifier-changes': verifier(({ task, episode }) => {
    task.answer = 'mine';
    episode.turns.length = 0;
    return { kind: 'score', score: 1 };
  }),
  'verifier-throws': verifier(() => {
    throw new Error('no dictionary');
  }),
};

const subjectOf = ({ answer }: { answer: string | null }) => ({ answer });
function tier(
  verify: (subject: unknown, context: { heartbeat(): void }) => Promise<unknown>,
  heartbeatSeconds = 10,
): TierVerifier {
  return {
    name: 'odd-tier',
    version: '1',
    tier: 'simulation',
    cost: { seconds: 0, usd: 0 },
    subject: subjectOf,
    variables: ['HOSTILE_KEY'],
    served: { by: 'function', verify: verify as never },
    limits: { timeoutSeconds: 10, heartbeatSeconds, maxAttempts: 2 },
  };
}

/** By what their subject says. */
const presentations: Record<string, () => unknown> = {
  fine: () => [{ kind: 'text', text: 'a subject' }],
  spin: forEver,
  hang: () => new Promise(() => undefined),
  exit: () => process.exit(3),
  huge: () => [{ kind: 'text', text: 'x'.repeat(100e6) }],
  many: () => Array.from({ length: 5e6 }),
  html: () => '<p>a subject</p>',
  throws: () => {
    throw new Error('no paper');
  },
};

const base = (): PlainEnvironment => calculatorEnvironment();
const environments: Environment[] = [
  ...Object.entries(tools).map(([kind, one]) => calculatorEnvironment(`hostile-${kind}`, one)),
  ...Object.entries(verifiers).map(([kind, one]) => ({
    ...base(),
    name: `hostile-${kind}`,
    verifiers: [one, ...base().verifiers],
  })),
  {
    ...base(),
    name: 'hostile-task',
    task: (ref) => {
      if (ref.split === 'train') throw new TypeError('task() is broken');
      return base().task(ref);
    },
  },
  { ...base(), name: 'hostile-prompt', task: (ref) => ({ ...base().task(ref), prompt: undefined as never }) },
  {
    ...base(),
    name: 'hostile-present',
    present: (subject) => presentations[(subject as { does: string }).does]!() as SubjectBlock[],
  },
  { ...base(), name: 'hostile-count', taskCount: () => Number.NaN },
  {
    ...base(),
    name: 'hostile-demonstrate',
    demonstrate: () => {
      throw new Error('no expert today');
    },
  },
  {
    ...base(),
    name: 'hostile-tiers',
    verifiers: [
      ...base().verifiers,
      { ...tier(async () => forEver(), 1), name: 'tier-spin' },
      { ...tier(() => new Promise(() => undefined)), name: 'tier-waits' },
      { ...tier(async () => ({ kind: 'scored', score: '0.5' })), name: 'tier-text' },
      { ...tier(() => Promise.reject(new Error('a licence is missing'))), name: 'tier-throws' },
      {
        ...tier(async (_, context) => {
          context.heartbeat();
          return { kind: 'scored', score: 1 };
        }),
        name: 'tier-beats',
      },
      {
        ...tier(async () => ({ kind: 'scored', score: 1, evidence: process.env['HOSTILE_KEY'] ?? 'none' })),
        name: 'tier-key',
      },
      {
        ...tier(async () => ({ kind: 'scored', score: 1 })),
        name: 'tier-subject',
        subject: () => {
          throw new Error('no subject');
        },
      },
    ],
  },
];
export default environments;
