import { describe, expect, test } from 'vitest';
import type { DiagnosisName } from '../../../../core/diagnosis/alarm.ts';
import { alarmsOf } from './stages.ts';
import { train } from './toy-training.ts';
import type { Toy } from './toy-training.ts';

// Nothing here is made up but the tasks: each training goes wrong by itself, because of what it is paid for or how.

/** The policy knows its tools, and has learnt enough of its tasks to do some four of five. */
const healthy: Toy = { steps: 100, learningRate: 1, begins: { look: 1, note: -1, ghost: -3 }, warmStart: 12 };
/** Without a beginning, small change for one thing is found before the task is. */
const forAPattern: Partial<Toy> = {
  warmStart: 0,
  learningRate: 0.6,
  bonuses: [{ verifier: 'pattern', weight: 0.8, score: ({ moves }) => Number(moves[0] === 'answer-0') }],
};

const countOf = (all: readonly string[], one: string): number => all.filter((move) => move === one).length;

test.each([1, 2, 3])(
  'a policy that learns to look and then to answer raises no alarm (seed %d)',
  async (seed) => {
    const stage = await train({ ...healthy, seed });
    const { successes, trials } = stage.at(-1)!.rollout!.arms[0]!;
    expect(successes / trials).toBeGreaterThan(0.9);
    expect(alarmsOf(stage)).toEqual([]);
  },
);

describe('what goes wrong is named', () => {
  const cases: [string, DiagnosisName, number, Partial<Toy>][] = [
    [
      'a verifier that pays for length',
      'length-explosion',
      20,
      { bonuses: [{ verifier: 'long', weight: 2, score: ({ tokens }) => Math.min(1, tokens / 60) }] },
    ],
    [
      'a verifier that counts calls of tools that there are not',
      'tool-hallucination',
      30,
      {
        begins: { look: 1, note: -1, ghost: -1 },
        bonuses: [{ verifier: 'busy', weight: 4, score: ({ moves }) => countOf(moves, 'ghost') / 6 }],
      },
    ],
    [
      'a verifier that pays for looking, over and over',
      'loops',
      15,
      { bonuses: [{ verifier: 'looks', weight: 2, score: ({ moves }) => countOf(moves, 'look') / 6 }] },
    ],
    ['a verifier that says the same of everything', 'no-contrast', 5, { outcome: () => 0.5 }],
    [
      'a verifier with a loophole: an answer at once',
      'reward-hacking',
      30,
      { bonuses: [{ verifier: 'quick', weight: 1.5, score: ({ moves }) => Number(moves.length === 1) }] },
    ],
    ['small change for one pattern', 'echo-trap', 25, forAPattern],
    ['the same, for longer', 'entropy-collapse', 55, forAPattern],
  ];

  test.each(cases)('%s: %s within %d steps', async (_, name, within, over) => {
    const alarms = alarmsOf(await train({ ...healthy, ...over }));
    const text = alarms.map((alarm) => `${alarm.name} at ${alarm.stageStep}`).join(', ');
    expect(alarms.find((alarm) => alarm.name === name)?.stageStep ?? Infinity, text).toBeLessThanOrEqual(
      within,
    );
  });

  test('the echo trap before the reward stops to rise', async () => {
    const stage = await train({ ...healthy, ...forAPattern });
    const named = alarmsOf(stage)[0]!;
    const rewards = stage.map(({ rollout }) => rollout!.rewardSum / rollout!.rewardCount);
    expect(named.name).toBe('echo-trap');
    expect(rewards[named.stageStep - 1]).toBeGreaterThan(2 * rewards[0]!);
    expect(Math.max(...rewards.slice(named.stageStep))).toBeGreaterThan(rewards[named.stageStep - 1]!);
  });
});
