import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { Json } from '../../core/json.ts';
import { calculatorEnvironment } from '../../environments/calculator/environment.ts';
import type { Candidate, TierVerifier, Verifier } from '../../environments/contract.ts';

// The calculator with a ladder of its own, for workers that are started with this module in GRADUS_ENVIRONMENTS: a
// cheap rung that only sees whether there is a number, a middle one that sees how near it is, and a dear one that knows.
// Every computation is a line in the file GRADUS_TEST_VERDICTS, so that a test can count what really ran.

const numberOf = (answer: string | null): number | null => {
  const value = answer === null ? Number.NaN : Number(answer);
  return Number.isFinite(value) && answer!.trim() !== '' ? value : null;
};

/** What the verdict depends on: asked for and answered. */
const subject = ({ task, answer }: Candidate): Json => {
  const value = numberOf(answer);
  return value === null ? null : { expected: Number(task.answer), value };
};

const verifiers: Verifier[] = [
  {
    name: 'is-number',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ answer }) => ({ kind: 'score', score: numberOf(answer) === null ? 0 : 0.6 }),
  },
  rung('near', 'simulation', 0.01, (off) => 1 / (1 + off)),
  {
    name: 'expert',
    version: '1',
    tier: 'world',
    cost: { seconds: 60, usd: 5 },
    subject,
    served: { by: 'people' },
    limits: { timeoutSeconds: 3600 },
  },
  rung('exact', 'high-fidelity', 1, (off) => (off === 0 ? 1 : 0)),
];

function rung(
  name: string,
  tier: 'simulation' | 'high-fidelity',
  usd: number,
  score: (off: number) => number,
): TierVerifier {
  return {
    name,
    version: '1',
    tier,
    cost: { seconds: 0.01, usd },
    subject,
    served: {
      by: 'function',
      verify: async (asked, context) => {
        const { expected, value } = asked as { expected: number; value: number };
        const file = process.env['GRADUS_TEST_VERDICTS'];
        // Held up as long as the test wants it.
        for (let beat = 0; existsSync(`${file}.hold-${name}`); beat++) {
          context.heartbeat();
          await wait(50, undefined, { signal: context.signal });
        }
        if (file !== undefined) await appendFile(file, `${JSON.stringify({ name, expected, value })}\n`);
        return { kind: 'scored', score: score(Math.abs(expected - value)), usd };
      },
    },
    limits: { timeoutSeconds: 600, heartbeatSeconds: 2, maxAttempts: 20 },
  };
}

const calculator = calculatorEnvironment('calculator-ladder');
export default { ...calculator, verifiers: [...calculator.verifiers, ...verifiers] };
