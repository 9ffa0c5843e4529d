import { afterAll, beforeAll, expect, test } from 'vitest';
import { isRewarded } from '../../../core/episode/outcome.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import { ids } from '../../../core/names.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { DONE } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { storedFacts } from '../../support/stored-facts.ts';

// A run that learns an ensemble of reward models of what its ladder has said, which then speaks for the lowest tier: what
// its models agree about costs nothing, and the rest goes to the next tier within a budget.

const THRESHOLD = 0.42;
const BUDGET = { count: 36, perStep: 18 };
const brief = ladderSpec([{ verifier: 'even', passAtLeast: 1 }], {
  groupsPerStep: 12,
  passAtLeast: 0.5,
});
const [warmStart, rl] = brief.stages;
const spec = {
  ...brief,
  reward: {
    ...brief.reward,
    model: { stage: 'judge', escalate: { uncertaintyAtLeast: THRESHOLD, audit: 0.1 } },
  },
  stages: [
    warmStart,
    rl,
    {
      kind: 'reward',
      name: 'judge',
      tasks: rl.tasks,
      episodes: { stage: 'rl' },
      models: 2,
      heldOut: 0.3,
      minibatch: 16,
      maxRounds: 2,
      graduation: { aucAtLeast: 0 },
    },
    { ...rl, name: 'judged', budgets: { even: BUDGET } },
  ],
};

let installation: LadderInstallation;
let leftAlone: CurriculumResult;
beforeAll(async () => {
  installation = await startLadderInstallation();
  leftAlone = await (await installation.runs.start('left-alone', spec)).result();
  expect(leftAlone.end).toEqual(DONE);
}, 600_000);
afterAll(() => installation?.remove());

type Decision = Extract<LedgerEntry, { kind: 'decision' }>;

const entriesOf = async (run: string) =>
  (await installation.ledger(run)).filter(({ stage }) => stage === 'judged');
const byModel = async (run: string) =>
  (await entriesOf(run)).filter(
    (entry): entry is Decision => entry.kind === 'decision' && entry.basis?.verifier === 'model:judge',
  );

/** What the decisive component of each episode of the stage came to. */
async function verdictsOf(run: string) {
  const { store } = installation;
  const keys = (await store.list(rolloutsPrefix(run, 'judged'))).filter(({ key }) =>
    key.endsWith('.judged.json'),
  );
  const groups = await Promise.all(
    keys.map(async ({ key }) => loadTrajectories(store, (await store.head(key))!)),
  );
  return groups.flatMap(({ episodes }) =>
    episodes.flatMap(({ outcome }) => (outcome && isRewarded(outcome) ? outcome.components : [])),
  );
}

test('what the models are sure of is decided by them, and what they are not goes up as far as the budget reaches', async () => {
  const decisions = await byModel('left-alone');
  const of = (...kinds: Decision['decision'][]) =>
    decisions.filter(({ decision }) => kinds.includes(decision));
  expect(of('escalate').length).toBeGreaterThan(0);
  expect(of('defer').length).toBeGreaterThan(0);
  // Whether models of a few episodes are sure of anything is theirs; test/integration/ladder has some that are.
  for (const { verifier, uncertainty } of of('accept', 'reject')) {
    expect(verifier).toBe('model:judge');
    expect(uncertainty).toBeLessThan(THRESHOLD);
  }
  for (const { verifier, uncertainty, reason } of of('escalate', 'defer')) {
    expect(verifier).toBe('even');
    if (!reason.includes('audited')) expect(uncertainty).toBeGreaterThanOrEqual(THRESHOLD);
  }
  const asked = (await entriesOf('left-alone')).filter(({ kind }) => kind === 'verdict');
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.length).toBeLessThanOrEqual(BUDGET.count);
  const { calibration, totals } = await installation.ladderEnd('left-alone');
  expect(calibration['model:judge → even']!.n).toBeGreaterThan(0);
  const { accepted = 0, rejected = 0 } = totals['model:judge'] ?? {};
  expect(accepted + rejected).toBe(of('accept', 'reject').length);
});

test('an episode is worth what the next tier said, and else what the models say on its scale', async () => {
  const verdicts = await verdictsOf('left-alone');
  const overruled = verdicts.filter((one) => one.overruled);
  const stood = verdicts.filter(({ model }) => model);
  expect(overruled.length).toBeGreaterThan(0);
  expect(stood.length).toBeGreaterThan(0);
  for (const { version, score, contribution, passed, model } of overruled) {
    expect(version).toBe('even@1');
    expect(model).toBeUndefined();
    expect(contribution).toBe(score);
    expect(passed).toBe(score === 1);
  }
  for (const { worth, contribution, passed, model, version } of stood) {
    expect(version).toBe('is-number@1');
    expect(model!.members).toHaveLength(2);
    expect(contribution).toBe(worth);
    expect(passed).toBe(model!.score >= 0.5);
  }
  // What is no number is the fast tier's alone.
  for (const { model, score } of verdicts) if (model) expect(score).toBe(0.6);
  const steps = (await readSteps(installation.store, 'left-alone')).filter(({ stage }) => stage === 'judged');
  const counts = steps.map(({ rollout }) => rollout!.components['ladder']!.model!);
  const sum = (of: (one: (typeof counts)[number]) => number) =>
    counts.reduce((total, one) => total + of(one), 0);
  expect(sum(({ judged }) => judged)).toBe(overruled.length + stood.length);
  expect(sum(({ compared }) => compared)).toBe(overruled.length);
});

test('a run that is killed while its models judge and while it is escalated decides and ends the same', async () => {
  const { runs, workers } = installation;
  const handle = await runs.start('killed', spec);
  await killInActivity(
    { workers, runs },
    (step) => [0, 1].map((group) => ids.group('killed', 'judged', step - 1, group)),
    'judgeEpisodes',
    'learner',
    { held: true },
  );
  await killInActivity({ workers, runs }, () => ids.ladder('killed'), 'settleClimb', 'orchestrator');
  const result = await handle.result();
  expect(result.end).toEqual(DONE);
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
  expect(await byModel('killed')).toEqual(await byModel('left-alone'));
  expect(await verdictsOf('killed')).toEqual(await verdictsOf('left-alone'));
  expect(await storedFacts(installation.store, 'killed')).toEqual(
    await storedFacts(installation.store, 'left-alone'),
  );
}, 600_000);
