import { existsSync } from 'node:fs';
import { appendFile, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { Json } from '../../core/json/json.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import type {
  Candidate,
  Task,
  TierFinding,
  TierVerifier,
  Verifier,
} from '../../environments/contract/environment.ts';

// The calculator with a ladder of its own, for workers that are started with this module in GRADUS_ENVIRONMENTS: a
// lower tier that only sees whether there is a number, a middle one that sees how near it is, and a dear one that knows.
// The others have a quirk each, for tests that must not hang on what the policy answers. Every computation is a line in
// the file GRADUS_TEST_VERDICTS, so that a test can count what really ran and when; it is held up while there is a file
// GRADUS_TEST_VERDICTS.hold-NAME. Attempts are counted in GRADUS_TEST_VERDICTS.attempts: a verifier's process is not
// the same from attempt to attempt.

export interface Computation {
  name: string;
  subject: Subject;
  /** Epoch milliseconds. */
  start: number;
}

interface Subject {
  expected: number;
  /** null where no number was answered. */
  value: number | null;
}

/** `exact` is asked of a worker that stands still: what that has taken is found out by this alone. */
const HEARTBEAT_SECONDS = { simulation: 20, 'high-fidelity': 6 };

const numberOf = (answer: string | null): number | null => {
  const value = answer === null ? Number.NaN : Number(answer);
  return Number.isFinite(value) && answer!.trim() !== '' ? value : null;
};

/** What the verdict depends on: asked for and answered. */
const subject = ({ task, answer }: Candidate): Json => ({
  expected: Number(task.answer),
  value: numberOf(answer),
});

export const isLarge = ({ answer }: Task): boolean => Number(answer) > 100;

const isHeld = (verifier: string): boolean =>
  existsSync(`${process.env['GRADUS_TEST_VERDICTS']}.hold-${verifier}`);
const scored = (score: number): TierFinding => ({ kind: 'scored', score });
const off = ({ expected, value }: Subject): number =>
  value === null ? Infinity : Math.abs(expected - value);

const verifiers: Verifier[] = [
  {
    name: 'is-number',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: async ({ task, answer }, { signal }) => {
      // Of what is trained on.
      while (task.ref.split === 'train' && isHeld('is-number')) await wait(50, undefined, { signal });
      return { kind: 'score', score: numberOf(answer) === null ? 0 : 0.6 };
    },
  },
  rung('near', 'simulation', 0.01, (asked) => scored(1 / (1 + off(asked)))),
  // Passes about half of what anybody answers.
  rung('even', 'simulation', 0.01, ({ value }) => scored(value !== null && value % 2 === 0 ? 1 : 0)),
  // Says the same of everything.
  rung('stern', 'simulation', 0.01, () => scored(0.4)),
  // Has nothing to say of tasks with a small answer.
  {
    ...rung('large', 'simulation', 0.01, () => scored(1)),
    subject: (candidate) => (isLarge(candidate.task) ? subject(candidate) : null),
  },
  // Takes three times what it says.
  rung('greedy', 'simulation', 1, () => ({ ...scored(1), usd: 3 })),
  // Works at the third attempt.
  rung('frail', 'simulation', 0.01, async (asked) => {
    const attempt = await countAttempt(JSON.stringify(asked));
    if (attempt < 3) throw new Error(`attempt ${attempt} came to nothing`);
    return scored(1);
  }),
  // Cannot judge anything, whenever it is asked.
  rung('mute', 'simulation', 0.01, () => ({ kind: 'abstained', type: 'no-opinion', reason: 'it has none' })),
  rung('crashing', 'simulation', 0.01, () => ({
    kind: 'abstained',
    type: 'crashed',
    reason: 'it always does',
  })),
  {
    name: 'expert',
    version: '1',
    tier: 'world',
    cost: { seconds: 60, usd: 5 },
    subject,
    served: { by: 'people' },
  },
  rung('exact', 'high-fidelity', 1, (asked) => scored(off(asked) === 0 ? 1 : 0)),
];

async function countAttempt(line: string): Promise<number> {
  const file = `${process.env['GRADUS_TEST_VERDICTS']}.attempts`;
  await appendFile(file, `${line}\n`);
  return (await readFile(file, 'utf8')).split('\n').filter((other) => other === line).length;
}

function rung(
  name: string,
  tier: 'simulation' | 'high-fidelity',
  usd: number,
  judge: (asked: Subject) => TierFinding | Promise<TierFinding>,
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
        const start = Date.now();
        const file = process.env['GRADUS_TEST_VERDICTS'];
        // Held up as long as the test wants it.
        while (isHeld(name)) {
          context.heartbeat();
          await wait(50, undefined, { signal: context.signal });
        }
        const found = await judge(asked as unknown as Subject);
        const line: Computation = { name, subject: asked as unknown as Subject, start };
        if (file !== undefined) await appendFile(file, `${JSON.stringify(line)}\n`);
        return { usd, ...found };
      },
    },
    limits: { timeoutSeconds: 600, heartbeatSeconds: HEARTBEAT_SECONDS[tier], maxAttempts: 20 },
  };
}

const calculator = calculatorEnvironment('calculator-ladder');
export default { ...calculator, verifiers: [...calculator.verifiers, ...verifiers] };
