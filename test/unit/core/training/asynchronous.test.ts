import { describe, expect, test } from 'vitest';
import type { EvaluationRequest } from '../../../../core/requests/evaluation.ts';
import type { TrainRequest } from '../../../../core/requests/learner.ts';
import type { GroupRequest } from '../../../../core/requests/rollout.ts';
import type { GroupResult } from '../../../../core/requests/verification.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import { go, ScriptedTraining, stageInput, unsolved } from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

/** Groups end in an order of their own: `keeps` says for how many learner steps one is under way, where there are so many. */
class Unequal extends ScriptedTraining {
  /** Requests in the order in which they were begun, with the learner steps that were made by then. */
  readonly begun: { request: GroupRequest; trained: number }[] = [];
  private readonly keeps: (request: GroupRequest) => number;
  private readonly waiting: { until: number; end: () => void }[] = [];

  constructor(script: Partial<Script>, keeps: (request: GroupRequest) => number = () => 0) {
    super({ heldOut: [0.5], ...script });
    this.keeps = keeps;
  }

  override async rollout(requests: readonly GroupRequest[]): Promise<GroupResult[]> {
    const results = await super.rollout(requests);
    this.begun.push(...requests.map((request) => ({ request, trained: this.trained.length })));
    const keeps = Math.max(...requests.map((request) => this.keeps(request)));
    if (keeps > 0) {
      const ended = new Promise<void>((end) =>
        this.waiting.push({ until: this.trained.length + keeps, end }),
      );
      await (keeps === Infinity ? ended : Promise.race([ended, this.idle()]));
    }
    return results;
  }

  /** Nobody learns for a while, so it may be that all wait for this. */
  private async idle(): Promise<void> {
    for (let turns = 0, before = -1; turns < 50; turns++) {
      if (this.trained.length !== before) turns = 0;
      before = this.trained.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  override async train(request: TrainRequest) {
    const result = await super.train(request);
    for (const { until, end } of this.waiting) if (until <= this.trained.length) end();
    return result;
  }

  /** A step that can be taken only when somebody ends: everybody does. */
  endAll(): void {
    for (const { end } of this.waiting) end();
  }
}

const asynchronous = (maxStaleness: number, over: Partial<RlStageSpec> = {}): Partial<RlStageSpec> => ({
  maxSteps: 6,
  collect: { kind: 'asynchronous', maxStaleness },
  mostTries: 6,
  graduation: { ...stageInput().stage.graduation, everySteps: 100 },
  ...over,
});

async function train(
  over: Partial<RlStageSpec>,
  ports: ScriptedTraining,
  gate: Parameters<typeof trainStage>[3] = go,
  from: StageState | null = null,
) {
  return trainStage(ports, stageInput(over), from, gate);
}

const namesOf = (groups: readonly { key: string }[]): string[] => groups.map(({ key }) => key);
const learned = (ports: ScriptedTraining) => ({
  batches: ports.batches.map(({ groups, policy }) => [policy, ...namesOf(groups)]),
  parents: ports.trained.map(({ parent }) => parent.weights),
});

describe('an asynchronous stage', () => {
  test('of no staleness asks for what one on-policy asks for', async () => {
    const script: Partial<Script> = { group: (request) => unsolved(request) };
    const [none, plain] = [new Unequal(script), new Unequal(script)];
    await train(asynchronous(0, { retryFailures: 0.5 }), none);
    await train(asynchronous(0, { retryFailures: 0.5, collect: { kind: 'on-policy' } }), plain);
    const unnumbered = (ports: Unequal) => ports.rollouts.flat().map((one) => ({ ...one, group: 0 }));
    expect(unnumbered(none)).toEqual(unnumbered(plain));
    expect(none.trained).toEqual(plain.trained);
    expect(none.facts.map(({ rollout }) => rollout)).toEqual(plain.facts.map(({ rollout }) => rollout));
  });

  test('begins groups by the newest weights, and a step takes those that have ended', async () => {
    // The first group of every second draw takes three learner steps.
    const slow = ({ step, firstTask }: GroupRequest): number => (firstTask === 0 && step % 2 === 1 ? 3 : 0);
    const ports = new Unequal({}, slow);
    await train(asynchronous(3, { maxSteps: 8 }), ports);
    for (const { request, trained } of ports.begun)
      expect(request.checkpoint.weights).toBe(trained === 0 ? 'warm-start-3' : `rl-${trained}`);
    const taken = ports.batches.flatMap(({ groups }) => namesOf(groups));
    // All that was begun, once; nothing is thrown away.
    expect(new Set(taken).size).toBe(8 * 4);
    expect(taken).toHaveLength(ports.begun.length);
    expect(Math.max(...ports.facts.map(({ rollout }) => rollout!.staleness!))).toBe(3);
    expect(ports.facts.map(({ rollout }) => rollout!.sampledByStaleness!.length - 1)).toEqual(
      ports.facts.map(({ rollout }) => rollout!.staleness),
    );
    // The learner is told how old each group of its batch is.
    expect(
      ports.batches.map(({ stepsAhead }) => Object.values(stepsAhead!).toSorted((a, b) => a - b)),
    ).toEqual(
      ports.facts.map(({ rollout }) =>
        rollout!.sampledByStaleness!.flatMap((tokens, age) => (tokens > 0 ? [age] : [])),
      ),
    );
    for (const { stepsAhead, step } of ports.batches)
      for (const [weights, age] of Object.entries(stepsAhead!))
        expect(weights).toBe(step - age === 1 ? 'warm-start-3' : `rl-${step - age - 1}`);
    const tokens = ports.facts.map(({ rollout }) => rollout!.sampledByStaleness!.reduce((a, b) => a + b));
    expect(tokens).toEqual(Array(8).fill(4 * 80));
  });

  describe('whose episodes go on with the newest weights', () => {
    const goingOn = (over: object = {}): Partial<RlStageSpec> =>
      asynchronous(2, {
        collect: { kind: 'asynchronous', maxStaleness: 2, onNewWeights: 'continue', ...over },
      });
    const slow = ({ firstTask }: GroupRequest): number => (firstTask === 0 ? 2 : 0);

    test('says which they are before it begins groups with them', async () => {
      const ports = new Unequal({}, slow);
      await train(goingOn(), ports);
      expect(ports.versions.map(({ after, checkpoint: { weights } }) => [after, weights])).toEqual(
        [0, 1, 2, 3, 4, 5].map((after) => [after, after === 0 ? 'warm-start-3' : `rl-${after}`]),
      );
      for (const { request, trained } of ports.begun) expect(request.continues).toEqual({ after: trained });
      // What there is between the oldest group in flight and the newest weights stays in the store.
      const kept = ports.retained.at(-1)!.pinned.map(({ weights }) => weights);
      expect(kept).toEqual(expect.arrayContaining(['rl-3', 'rl-4', 'rl-5', 'rl-6']));
    });

    test('counts each token by the weights that sampled it, and the bound by the oldest', async () => {
      // Of the 80 tokens of a group that is under way for a while 20 are of the weights after those that it began with.
      class Mixed extends Unequal {
        override async rollout(requests: readonly GroupRequest[]): Promise<GroupResult[]> {
          const results = await super.rollout(requests);
          return results.map((result, i) => {
            const { continues } = requests[i]!;
            const sampledBy = [{ weights: `rl-${continues!.after + 1}`, tokens: 20 }];
            return slow(requests[i]!) > 0 ? { ...result, sampledBy } : result;
          });
        }
      }
      const ports = new Mixed({}, slow);
      await train(goingOn(), ports);
      let mixed = 0;
      ports.batches.forEach(({ groups, step, stepsAhead }, i) => {
        const expected = [0, 0, 0];
        for (const name of namesOf(groups)) {
          const { request } = ports.begun.find((one) => name.endsWith(`/${one.request.group}`))!;
          const age = step - 1 - request.continues!.after;
          expect(age).toBeLessThanOrEqual(2);
          const newer = slow(request) > 0 && age > 0 ? 20 : 0;
          expected[age]! += 80 - newer;
          if (newer === 0) continue;
          mixed++;
          expected[age - 1]! += newer;
          expect(stepsAhead).toMatchObject({ [`rl-${request.continues!.after + 1}`]: age - 1 });
        }
        const { staleness, sampledByStaleness } = ports.facts[i]!.rollout!;
        expect(sampledByStaleness).toEqual(expected.slice(0, staleness! + 1));
      });
      expect(mixed).toBeGreaterThan(0);
    });

    test('tells the run that is followed, and asks for none of it without staleness', async () => {
      const ports = new Unequal({});
      await train(goingOn({ maxStaleness: 0 }), ports);
      expect(ports.versions).toEqual([]);
      expect(ports.begun.every(({ request }) => request.continues === undefined)).toBe(true);

      const followed = new Unequal({}, slow);
      await train(goingOn(), followed);
      const again = new Unequal({}, slow);
      for (const [place, taken] of followed.taken) again.taken.set(place, taken);
      await train(goingOn({ follow: 'run' }), again);
      expect(again.begun.map(({ request }) => request.continues)).toEqual(
        expect.arrayContaining([{ after: 0, follow: 'run' }]),
      );
      expect(learned(again)).toEqual(learned(followed));
    });
  });

  test.each([1, 2, 3, 5])(
    'has no more than %i groups in flight, and each step all of its groups',
    async (inFlight) => {
      let running = 0;
      let most = 0;
      class Counted extends Unequal {
        override async rollout(requests: readonly GroupRequest[]): Promise<GroupResult[]> {
          most = Math.max(most, ++running);
          const results = await super.rollout(requests);
          running -= 1;
          return results;
        }
      }
      const ports = new Counted({});
      await train(asynchronous(2, { collect: { kind: 'asynchronous', maxStaleness: 2, inFlight } }), ports);
      expect(most).toBe(inFlight);
      expect(ports.batches.map(({ groups }) => groups.length)).toEqual(Array(6).fill(4));
    },
  );

  test('waits for a group that would be too old for the next step, and says how long', async () => {
    const ports = new Unequal({}, ({ step, firstTask }) => (step === 1 && firstTask === 0 ? Infinity : 0));
    const ended = train(asynchronous(2), ports);
    // Steps 1 and 2 go on without it; step 3 is the last that may take it.
    await expect.poll(() => ports.trained.length).toBe(2);
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(ports.trained).toHaveLength(2);
    ports.endAll();
    await ended;
    expect(namesOf(ports.batches[2]!.groups)[0]).toMatch(/^rl\/1\//);
    const waited = ports.facts.map(({ circumstances }) => circumstances.waitedForOldest);
    expect(waited[2]).toBeGreaterThan(0);
    expect(waited.filter((seconds) => seconds !== 0)).toHaveLength(1);
    expect(ports.facts[2]!.rollout!.staleness).toBe(2);
  });

  test('says for how many seconds it neither sampled nor learned', async () => {
    /** Groups take no time, a learner step ten seconds, an evaluation three. */
    class Clocked extends Unequal {
      clock = 0;
      override now(): number {
        return this.clock;
      }
      override async train(request: TrainRequest) {
        const start = this.clock;
        this.clock += 10_000;
        const result = await super.train(request);
        return { ...result, spans: [{ part: 'learner' as const, start, end: this.clock }] };
      }
      override async evaluate(request: EvaluationRequest) {
        const start = this.clock;
        this.clock += 3_000;
        const result = await super.evaluate(request);
        return { ...result, spans: [{ part: 'rollout' as const, start, end: this.clock }] };
      }
      get without() {
        return this.facts.map(({ circumstances: { idle } }) => [idle?.rollout, idle?.learner]);
      }
    }
    const quick = new Clocked({});
    await train(
      asynchronous(2, { maxSteps: 3, graduation: { ...stageInput().stage.graduation, everySteps: 2 } }),
      quick,
    );
    expect(quick.without).toEqual([
      [10, 0],
      [10, 3],
      [10, 3],
    ]);

    const slow = new Clocked({}, ({ step, firstTask }) => (step === 1 && firstTask === 0 ? Infinity : 0));
    const ended = train(asynchronous(2, { maxSteps: 4 }), slow);
    await expect.poll(() => slow.trained.length).toBe(2);
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
    slow.clock += 5_000;
    slow.endAll();
    await ended;
    expect(slow.without.slice(0, 3)).toEqual([
      [0, 0],
      [0, 0],
      [10, 5],
    ]);
    expect(slow.facts[2]!.circumstances.waitedForOldest).toBe(5);

    const fresh = new Clocked({});
    await train(asynchronous(0, { maxSteps: 1 }), fresh);
    expect(fresh.facts[0]!.circumstances).not.toHaveProperty('idle');
  });

  test('counts updates of the optimizer, those of the step itself included', async () => {
    class Thrice extends Unequal {
      override async train(request: TrainRequest) {
        const { metrics, ...result } = await super.train(request);
        return { ...result, metrics: { ...metrics, updates: 3 } };
      }
    }
    const ports = new Thrice({}, ({ step, firstTask }) => (step === 1 && firstTask === 0 ? 1 : 0));
    await train(asynchronous(1), ports);
    const facts = ports.facts.map(({ rollout }) => [rollout!.staleness, rollout!.staleUpdates]);
    expect(facts[0]).toEqual([0, 2]);
    expect(facts[1]).toEqual([1, 5]);
  });

  test('of a run that is followed learns the same, whatever ends when', async () => {
    const script: Partial<Script> = { group: (request) => unsolved(request) };
    const over = { maxSteps: 8, retryFailures: 0.5 };
    const first = new Unequal(script, ({ step, group }) => (step * 7 + group) % 3);
    await train(asynchronous(2, over), first);
    const second = new Unequal(script);
    for (const [step, groups] of first.taken) second.taken.set(step, groups);
    const collect = { kind: 'asynchronous' as const, maxStaleness: 2, follow: 'run' };
    await train(asynchronous(2, { ...over, collect }), second);
    expect(learned(second)).toEqual(learned(first));
    // It begins only what was taken, each by the weights that sampled it before.
    const asked = (ports: Unequal) =>
      new Map(ports.rollouts.flat().map((one) => [`${one.step}/${one.group}`, one]));
    const before = asked(first);
    for (const [name, request] of asked(second)) expect(request).toEqual(before.get(name));
  });

  test('takes what another execution of its steps has taken, and goes on from there', async () => {
    const first = new Unequal({}, ({ step, group }) => (step * 7 + group) % 3);
    await train(asynchronous(2, { maxSteps: 8 }), first);
    const second = new Unequal({});
    for (const [step, groups] of first.taken)
      if (Number(step.split('/')[1]) <= 4) second.taken.set(step, groups);
    const { end } = await train(asynchronous(2, { maxSteps: 8 }), second);
    expect(end).toBe('exhausted');
    expect(learned(second).batches.slice(0, 4)).toEqual(learned(first).batches.slice(0, 4));
    expect(second.trained).toHaveLength(8);
    const taken = second.batches.flatMap(({ groups }) => namesOf(groups));
    expect(new Set(taken).size).toBe(taken.length);
  });

  test('goes on as if nothing had been when it is carried over at any step', async () => {
    const script: Partial<Script> = { group: (request) => unsolved(request) };
    for (const at of [0, 1, 3, 5]) {
      const first = new Unequal(script);
      let carriedOver: StageState | null = null;
      await train(asynchronous(2), first, async ({ step }, carried) => {
        if (step !== at) return 'go';
        carriedOver = JSON.parse(JSON.stringify(await carried())) as StageState;
        return 'stop';
      });
      const second = new Unequal(script);
      const result = await train(asynchronous(2), second, go, carriedOver);
      const whole = new Unequal(script);
      expect(result).toEqual(await train(asynchronous(2), whole));
      const together = [...learned(first).batches, ...learned(second).batches];
      expect(together).toEqual(learned(whole).batches);
    }
  });

  test('learns nothing from what the weights before a roll-back have sampled', async () => {
    const over = asynchronous(1, { graduation: stageInput().stage.graduation });
    const ports = new Unequal({ heldOut: [0.8, 0.1, 0.8, 0.8, 0.8, 0.8] });
    const { steps } = await train(over, ports);
    // Step 2 has collapsed; the groups of one more step were in flight or drawn by then.
    expect(ports.trained.map(({ stageStep, parent }) => [stageStep, parent.weights])).toEqual([
      [1, 'warm-start-3'],
      [2, 'rl-1'],
      [4, 'rl-1'],
      [5, 'rl-4'],
      [6, 'rl-5'],
    ]);
    expect(ports.facts[2]).toMatchObject({ stageStep: 3, learner: null, rollout: { givenUp: true } });
    const after = ports.begun.slice(-4).map(({ request }) => request.checkpoint.weights);
    expect(new Set(after)).toEqual(new Set(['rl-4']));
    expect(steps).toBe(9);
  });

  test('of a run that has rolled back is made again with the same facts', async () => {
    const rolledBack = { heldOut: [0.8, 0.1, 0.8, 0.8, 0.8, 0.8] };
    const { graduation } = stageInput().stage;
    for (const inFlight of [1, 3, 8]) {
      const first = new Unequal(rolledBack);
      await train(
        asynchronous(1, { graduation, collect: { kind: 'asynchronous', maxStaleness: 1, inFlight } }),
        first,
      );
      const second = new Unequal(rolledBack);
      for (const [step, groups] of first.taken) second.taken.set(step, groups);
      const collect = { kind: 'asynchronous' as const, maxStaleness: 1, inFlight, follow: 'run' };
      await train(asynchronous(1, { graduation, collect }), second);
      const facts = (ports: Unequal) =>
        ports.facts.map((one) => {
          const { circumstances: _, ...step } = one;
          return step;
        });
      expect(facts(second)).toEqual(facts(first));
    }
  });

  test('gives no name to two groups of other tasks, though its steps are made again in another order', async () => {
    const script: Partial<Script> = { group: (request) => unsolved(request) };
    const over = { maxSteps: 8, retryFailures: 0.25 };
    const first = new Unequal(script, ({ step, firstTask }) => (step * 7 + firstTask) % 3);
    await train(asynchronous(2, over), first);
    for (let until = 1; until < 6; until++) {
      const takenBefore = [...first.taken].filter(([step]) => Number(step.split('/')[1]) <= until);
      const names = new Set(takenBefore.flatMap(([, { groups }]) => groups.map(({ group }) => group)));
      // What was taken is stored, and comes at once.
      const again = new Unequal(script, ({ step, firstTask, group }) =>
        names.has(group) ? 0 : (step + 5 * firstTask) % 3,
      );
      for (const [step, groups] of takenBefore) again.taken.set(step, groups);
      await train(asynchronous(2, over), again);
      const asked = new Map(first.rollouts.flat().map((one) => [`${one.step}/${one.group}`, one]));
      for (const request of again.rollouts.flat()) {
        const before = asked.get(`${request.step}/${request.group}`);
        if (before !== undefined) expect(request).toEqual(before);
      }
    }
  });

  test('ends where the run that it follows has ended, and where that one took older groups', async () => {
    const first = new Unequal({}, ({ step, firstTask }) => (step === 1 && firstTask === 0 ? 2 : 0));
    await train(asynchronous(2), first);
    const follow = (maxStaleness: number, steps: number) => {
      const second = new Unequal({});
      for (const [step, groups] of first.taken)
        if (Number(step.split('/')[1]) <= steps) second.taken.set(step, groups);
      return train(
        asynchronous(2, { collect: { kind: 'asynchronous', maxStaleness, follow: 'run' } }),
        second,
      );
    };
    expect(await follow(2, 3)).toMatchObject({
      end: 'stopped',
      reason: 'run has taken no groups for step 4',
      steps: 6,
    });
    expect(await follow(0, 6)).toMatchObject({
      end: 'stopped',
      reason: expect.stringContaining('older than maxStaleness'),
    });
  });

  test('keeps the weights that sample from retention', async () => {
    const ports = new Unequal({}, ({ step }) => (step === 1 ? 2 : 0));
    await train(asynchronous(2, { graduation: stageInput().stage.graduation }), ports);
    const pinned = ports.retained.map((request) => request.pinned.map(({ weights }) => weights));
    expect(pinned[1]).toContain('warm-start-3');
    expect(pinned[3]).toContain('rl-2');
  });
});
