import { expect, test } from 'vitest';
import { createLadder } from '../../../activities/ladder/ladder.ts';
import { verifyAll } from '../../../activities/verification/verify-episodes.ts';
import { noCalibration, predict } from '../../../core/ladder/calibration.ts';
import type { Calibration } from '../../../core/ladder/calibration.ts';
import type { PlanRequest } from '../../../core/ladder/requests.ts';
import { isRewarded } from '../../../core/episode/outcome.ts';
import { labelOf, modelVerdict } from '../../../core/reward/reward-model.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { readLedger } from '../../../store/ladder/ledger.ts';
import { loadTrajectories, putTrajectories } from '../../../store/rollout/trajectories.ts';
import { keepNear, planRequest, REWARD, task } from '../../support/escalating-numbers.ts';
import calculatorWithLadder from '../../support/ladder-calculator.ts';
import { answered } from '../../support/ladder-groups.ts';
import { openTestStore } from '../../support/test-store.ts';

// Candidates that a reward model has judged, on a real store: what is asked, what they are worth, and what is learnt of it.

const { store } = await openTestStore();
const environments = inThisProcess([calculatorWithLadder]);
const ladder = createLadder({ store, environments });
const { signal } = new AbortController();

// Its reward rejects what is no number.
const reward = { ...REWARD, ladder: { verifier: 'is-number', passAtLeast: 0.5 } };

/** Answers to one task, with what two models say of each. */
async function judged(run: string, answers: readonly (readonly [string, number, number])[]) {
  const episodes = answers.map(([answer], sample) => answered(answer, sample, 2));
  const models = answers.map(([, a, b]) => modelVerdict([[a], [b]], { by: 'mean-deviation', deviations: 1 }));
  const outcomes = await verifyAll(
    environments,
    episodes.map((episode, i) => ({ ref: task(0), episode, model: models[i]! })),
    reward,
    { signal },
  );
  episodes.forEach((episode, i) => (episode.outcome = outcomes[i]!));
  const tasks = [{ ref: task(0), prompt: '', promptTokens: [0] }];
  const group = { id: 'group-0', weights: 'w', temperature: 1, tasks, episodes };
  return (await putTrajectories(store, { run, stage: 'rl', step: 1 }, group)).ref;
}

/** What a line of many pairs on the diagonal is sure of. */
const sure: Calibration = {
  n: 100,
  x: 50,
  y: 50,
  xx: 35,
  xy: 35,
  yy: 35,
  agreement: { passPass: 50, passFail: 0, failPass: 0, failFail: 50 },
};

async function requestOf(run: string, line: Calibration, budget: PlanRequest['budget'], audit = 0) {
  const ref = await judged(run, [
    ['1', 0.95, 0.95],
    ['2', 0.05, 0.05],
    ['3', 1, 0],
    ['none', 0.99, 0.99],
  ]);
  const base = planRequest(run, [ref]);
  const [lowest, near] = base.verification.rungs;
  const verification = {
    ...base.verification,
    rungs: [{ ...lowest!, passAtLeast: 0.5 }, near!],
    learned: { stage: 'judge', uncertaintyAtLeast: 0.3, audit, seed: 1 },
  };
  return { ...base, verification, calibrations: [noCalibration(), line], budget };
}

const outcomesOf = async (request: PlanRequest) => {
  const ledger = { writer: 'run', sequence: 9 };
  const { groups, calibrations } = await ladder.settleClimb({ ...request, reward, ledger }, signal);
  const { episodes } = await loadTrajectories(store, groups[0]!.trajectories!);
  return { episodes, calibrations, behaviour: groups[0]!.behaviour };
};

test('only what models disagree about is asked, and a verdict replaces theirs', async () => {
  const request = await requestOf('apart', sure, {});
  const plan = await ladder.planClimb(request, signal);
  expect(plan.digests).toHaveLength(1);
  expect(await ladder.planClimb(request, signal)).toEqual(plan);
  const [decision] = await readLedger(store, 'apart');
  expect(decision).toMatchObject({
    decision: 'escalate',
    verifier: 'near',
    basis: { rung: 0, verifier: 'model:judge', score: 0.5 },
  });
  await keepNear(store, plan.digests[0]!, 0.75);

  const { episodes, calibrations, behaviour } = await outcomesOf(request);
  const said = episodes.map(({ outcome }) => (isRewarded(outcome!) ? outcome.components[0]! : null));
  expect(said[0]).toMatchObject({
    version: 'is-number@1',
    passed: true,
    worth: predict(calibrations[1]!, 0.95).mean,
  });
  expect(said[1]).toMatchObject({ version: 'is-number@1', passed: false });
  expect(said[1]!.contribution).toBeLessThanOrEqual(0.05);
  expect(said[2]).toMatchObject({ version: 'near@1', score: 0.75, passed: true, contribution: 0.75 });
  expect(said[2]!.overruled!.members).toEqual([1, 0]);
  // What is no number is none, however sure the models are of it.
  expect(said[3]).toMatchObject({ version: 'is-number@1', score: 0, passed: false, contribution: 0 });
  expect(said[3]!.model).toBeUndefined();
  // The pair is the model's, and the line of the fast verifier stays as it was.
  expect(calibrations.map(({ n }) => n)).toEqual([0, 101]);
  expect(behaviour.components['ladder']!.model).toMatchObject({ judged: 3, compared: 1, excess: -0.75 });
  // A model learns from verdicts alone, and from no model.
  expect(episodes.map((episode) => labelOf(reward, episode)?.label ?? null)).toEqual([null, null, 0.75, 0]);
});

test('a model that nobody has compared yet is asked about in full, as far as the budget reaches', async () => {
  const all = await requestOf('new', noCalibration(), {});
  expect((await ladder.planClimb(all, signal)).digests).toHaveLength(2);
  const none = await requestOf('poor', noCalibration(), { count: 0 });
  expect((await ladder.planClimb(none, signal)).digests).toEqual([]);
  const decisions = (await readLedger(store, 'poor')).map((entry) => 'decision' in entry && entry.decision);
  expect(new Set(decisions)).toEqual(new Set(['defer']));
  const { episodes } = await outcomesOf({ ...none, ledger: { writer: 'run', sequence: 2 } });
  for (const { outcome } of episodes.slice(0, 2))
    expect(isRewarded(outcome!) && outcome.components[0]!.version).toBe('is-number@1');
});

test('what the run that the models learnt from has judged is no evidence of how good they are', async () => {
  const settled = async (run: string, learntFrom?: string) => {
    const request = await requestOf(run, noCalibration(), {});
    const learned = { ...request.verification.learned, ...(learntFrom && { learntFrom }) };
    const plan = await ladder.planClimb(request, signal);
    for (const digest of plan.digests) await keepNear(store, digest, 0.75);
    return outcomesOf({ ...request, verification: { ...request.verification, learned } });
  };
  const { calibrations } = await settled('learnt-from');
  expect(calibrations[1]!.n).toBeGreaterThan(0);
  expect((await settled('learns', 'learnt-from')).calibrations[1]!.n).toBe(0);
  expect((await settled('learns-nothing')).calibrations).toEqual(calibrations);
});

test('an audit asks about what the models are sure of', async () => {
  const request = await requestOf('audited', sure, {}, 1);
  // What others have had computed is not known to a run that counts verdicts.
  const verification = { ...request.verification, counts: 'verdicts' as const };
  await ladder.planClimb({ ...request, verification }, signal);
  const reasons = (await readLedger(store, 'audited')).map((entry) => 'reason' in entry && entry.reason);
  expect(reasons).toHaveLength(3);
  for (const reason of reasons) expect(reason).toMatch(/^model:judge said .*; it is audited/);
});
