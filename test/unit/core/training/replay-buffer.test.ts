import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { effectiveSamples } from '../../../../core/algorithms/effective-samples.ts';
import type { BatchRequest } from '../../../../core/requests/batch.ts';
import type { ReplayCollect } from '../../../../core/schema/collect.ts';
import { figuresOf } from '../../../../core/training/figures.ts';
import { chooseReplayed } from '../../../../core/training/replay-buffer.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import { go, ScriptedTraining, stageInput, unsolved } from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

const collecting = (over: Partial<ReplayCollect> = {}): ReplayCollect => ({
  kind: 'replay',
  part: 0.5,
  maxStaleness: 2,
  priority: 'oldest',
  minEffectiveSamples: 0.5,
  ...over,
});

const stage = () => ({
  ...stageInput({
    maxSteps: 8,
    groupsPerStep: 4,
    groupsPerWorkflow: 1,
    graduation: { ...stageInput().stage.graduation, everySteps: 100 },
  }),
});

/** Every fresh group moves the policy, the later ones of a step more. */
const moving = ({ groups }: BatchRequest) =>
  groups
    .filter(({ key }) => !key.includes('#'))
    .map((_, group) => ({ group, task: 0, advantage: group / 10, tokens: 80 }));

async function train(
  collect: object,
  script: Partial<Script> = {},
  gate: Parameters<typeof trainStage>[3] = go,
  from: StageState | null = null,
  ports = new ScriptedTraining({ heldOut: [0.5], moving, ...script }),
) {
  const input = stage();
  await trainStage(ports, { ...input, stage: { ...input.stage, collect: collect as never } }, from, gate);
  return ports;
}

const keysOf = (ports: ScriptedTraining) => ports.batches.map(({ groups }) => groups.map(({ key }) => key));
const stepIn = (key: string): number => Number(key.split('/')[1]);

describe('a stage with a replay buffer', () => {
  test('has successes scored by the policy, also where it looks at no importance weights', async () => {
    const successes = { from: 0.5, to: 0.95 };
    const ports = await train(collecting({ minEffectiveSamples: 0, successes }));
    expect(ports.replayKept.length).toBeGreaterThan(0);
    expect(ports.scored).toHaveLength(ports.replayKept.length);
    for (const request of ports.replayKept) expect(request).toMatchObject({ successes });
    const plain = await train(collecting({ minEffectiveSamples: 0 }));
    expect(plain.scored).toEqual([]);
    expect(plain.replayKept[0]).not.toHaveProperty('successes');
  });

  test('that replays no part of a step asks for what one on-policy asks for', async () => {
    const script: Partial<Script> = { group: (request) => unsolved(request) };
    const none = await train(collecting({ part: 0 }), script);
    const plain = await train({ kind: 'on-policy' }, script);
    expect(none.rollouts).toEqual(plain.rollouts);
    expect(none.batches).toEqual(plain.batches);
    expect(none.trained).toEqual(plain.trained);
    expect(none.facts.map(({ rollout }) => rollout)).toEqual(plain.facts.map(({ rollout }) => rollout));
  });

  test('samples what it does not replay, replays each group once, and none that is too old', async () => {
    const ports = await train(collecting());
    const seen = new Set<string>();
    ports.batches.forEach(({ groups, step, replayed }, i) => {
      expect(groups).toHaveLength(4);
      expect(replayed).toBe(step === 1 ? 0 : 2);
      expect(ports.rollouts[i]!.flatMap(({ tasks }) => tasks)).toHaveLength(4 - replayed!);
      for (const { key } of groups.slice(4 - replayed!)) {
        expect(seen).not.toContain(key);
        seen.add(key);
        expect(step - stepIn(key)).toBeLessThanOrEqual(2);
      }
    });
    for (const { groups, step, replayed, stepsAhead } of ports.batches) {
      const ages = groups.slice(4 - replayed!).map(({ key }) => step - stepIn(key));
      const weights = (age: number) => (step - age === 1 ? 'warm-start-3' : `rl-${step - age - 1}`);
      expect(stepsAhead).toEqual(Object.fromEntries(ages.map((age) => [weights(age), age])));
    }
    for (const { rollout } of ports.facts.slice(1)) {
      const { groups, byStaleness } = rollout!.replayed!;
      expect(byStaleness.reduce((a, b) => a + b)).toBe(groups);
      expect(byStaleness.length - 1).toBe(rollout!.staleness);
    }
  });

  test('tells how old the tokens are that it trains on: those that it samples are fresh', async () => {
    const { facts } = await train(collecting());
    for (const step of facts.slice(1)) {
      const { byStaleness, tokensByStaleness } = step.rollout!.replayed!;
      expect(tokensByStaleness).toEqual(byStaleness.map((groups) => 80 * groups));
      // Four groups of as many tokens.
      const old = byStaleness.reduce((sum, groups, age) => sum + age * groups, 0);
      const figures = figuresOf(step);
      expect(figures['staleness/mean']).toBeCloseTo(old / 4, 12);
      expect(figures['staleness/share-of-0']).toBe(0.5);
    }
    const uncounted = await train(collecting(), {
      moving: (request) => moving(request).map(({ group, task, advantage }) => ({ group, task, advantage })),
    });
    const figures = figuresOf(uncounted.facts[1]!);
    expect(figures['staleness/most']).toBe(1);
    expect(figures).not.toHaveProperty('staleness/mean');
  });

  test('raises no alarm for training more tokens than it samples', async () => {
    const whole = ({ groups }: BatchRequest) => 80 * groups.length;
    const ports = await train(collecting(), { masked: whole });
    const [, second] = ports.facts;
    expect(second!.batch!.maskedTokens).toBeGreaterThan(second!.rollout!.sampledTokens);
    const raised = ({ facts }: ScriptedTraining) =>
      facts.flatMap(({ stageStep, alarms }) =>
        alarms.some(({ name }) => name === 'missing-mask') ? [stageStep] : [],
      );
    expect(raised(ports)).toEqual([]);
    const one = (request: BatchRequest) => whole(request) + Number(request.step === 5);
    expect(raised(await train(collecting(), { masked: one }))).toEqual([5]);
  });

  test('loses no group: each is replayed, too old, too far, or still there', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.double({ min: 0.25, max: 0.9, noNaN: true }),
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom('oldest' as const, 'advantage' as const),
        fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
        async (part, maxStaleness, priority, far) => {
          const ports = await train(collecting({ part, maxStaleness, priority }), {
            tooFar: (step) => !far[step - 1],
          });
          let buffered = 0;
          for (const { rollout } of ports.facts) {
            const { replayed } = rollout!;
            expect(replayed!.buffered).toBe(
              buffered - replayed!.groups - replayed!.tooOld - replayed!.tooFar,
            );
            buffered = replayed!.buffered + 4 - replayed!.groups;
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  test('samples other tasks in the place of groups that the weights are too far from', async () => {
    const ports = await train(collecting(), { tooFar: (_, place) => place > 0 });
    for (const [i, { rollout }] of ports.facts.entries()) {
      expect(rollout!.replayed).toMatchObject(i === 0 ? { groups: 0 } : { groups: 1, tooFar: 1 });
      expect(ports.rollouts[i]!.flatMap(({ tasks }) => tasks)).toHaveLength(i === 0 ? 4 : 3);
    }
  });

  test('has the groups of a step that came to no training again', async () => {
    const ports = await train(collecting({ maxStaleness: 8 }), {
      gapAt: 3,
      decisions: ['continue'],
    });
    const [, , untrained, next] = keysOf(ports).map((keys) => keys.map((key) => key.replace(/#.*/, '')));
    expect(untrained!.slice(2)).toEqual(next!.slice(2));
    const { replayed, staleness, staleUpdates } = ports.facts[2]!.rollout!;
    expect(replayed).toMatchObject({ groups: 0, byStaleness: [0] });
    expect({ staleness, staleUpdates }).toEqual({ staleness: 0, staleUpdates: 0 });
    expect(ports.facts[3]!.rollout!.replayed!.buffered).toBe(replayed!.buffered - 2);
  });

  test('looks at no weights where it has no bound', async () => {
    expect((await train(collecting({ minEffectiveSamples: 0 }))).scored).toEqual([]);
    expect((await train(collecting())).scored).toHaveLength(7);
  });

  test('counts the time in which groups that it may replay are scored as the learner’s', async () => {
    const { facts } = await train(collecting(), { scoreSeconds: 5 });
    expect(facts.map(({ circumstances }) => circumstances.seconds.learner)).toEqual([
      0,
      ...Array<number>(7).fill(5),
    ]);
  });

  test.each([
    ['', {}],
    [', also behind one that came to no training', { gapAt: 3, decisions: ['continue'] }],
  ] as [string, Partial<Script>][])(
    'goes on where it continues as new, whatever the step%s',
    async (_, script) => {
      const ofAll = () => collecting({ priority: 'advantage', maxStaleness: 8 });
      const scripted = () => ({ ...script, ...(script.decisions && { decisions: [...script.decisions] }) });
      const whole = await train(ofAll(), scripted());
      for (let at = 1; at < 8; at++) {
        let kept: StageState | undefined;
        const ports = await train(ofAll(), scripted(), async (state, carried) => {
          if (state.step < at) return 'go';
          kept = JSON.parse(JSON.stringify(await carried())) as StageState;
          return 'stop';
        });
        await train(ofAll(), {}, go, kept ?? null, ports);
        expect(keysOf(ports)).toEqual(keysOf(whole));
      }
    },
  );
});

test('groups are replayed by their age, or by advantage with the older of equal ones first', () => {
  const groups = [0.1, 0.5, 0.2, 0.5].map((advantage, place) => ({ advantage, place }));
  const places = (count: number, priority: ReplayCollect['priority']) =>
    chooseReplayed(groups, count, priority).map(({ place }) => place);
  expect(places(3, 'oldest')).toEqual([0, 1, 2]);
  expect(places(3, 'advantage')).toEqual([1, 3, 2]);
  expect(places(9, 'advantage')).toEqual([1, 3, 2, 0]);
});

test('the effective sample size is that of Kish, and no common factor changes it', () => {
  expect(effectiveSamples([])).toBe(1);
  expect(effectiveSamples([0.7, 0.7, 0.7])).toBe(1);
  expect(effectiveSamples([0, NaN])).toBe(0);
  expect(effectiveSamples([Math.log(3), 0])).toBeCloseTo(16 / (2 * 10), 12);
  const ratios = fc.array(fc.double({ min: -20, max: 20, noNaN: true }), { minLength: 1 });
  fc.assert(
    fc.property(ratios, fc.double({ min: -500, max: 500, noNaN: true }), (all, factor) => {
      const size = effectiveSamples(all);
      expect(size).toBeGreaterThanOrEqual(1 / all.length - 1e-12);
      expect(size).toBeLessThanOrEqual(1 + 1e-12);
      expect(effectiveSamples(all.map((one) => one + factor))).toBeCloseTo(size, 6);
    }),
  );
});
