import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { DONE } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpecCollecting } from '../../support/tiny-spec.ts';

// Rollouts that do not wait for the learner: real servers and workers, SIGKILL, and stages that continue as new while
// steps are begun.

let installation: TestInstallation;

const LAGGING = tinySpecCollecting({ kind: 'pipelined', lag: 2 });

beforeAll(async () => {
  installation = await startTestInstallation({
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 },
  });
}, 600_000);

afterAll(() => installation?.remove());

const weightsOf = async (run: string, spec: object): Promise<string> => {
  const { end, checkpoint } = await (await installation.runs.start(run, spec)).result();
  expect(end).toEqual(DONE);
  return checkpoint.weights;
};

test('without lag a run ends with the weights of an on-policy one', async () => {
  const plain = await weightsOf('plain', tinySpecCollecting({ kind: 'on-policy' }));
  expect(await weightsOf('no-lag', tinySpecCollecting({ kind: 'pipelined', lag: 0 }))).toBe(plain);
}, 600_000);

test('killed while steps are begun, a run ends with the weights of one that was left alone', async () => {
  const { runs, workers, settings } = installation;
  const leftAlone = await weightsOf('left-alone', LAGGING);

  const run = await runs.start('killed', LAGGING);
  await killInActivity({ runs, workers }, (step) => ids.group('killed', 'rl', step, 1), 'advance', 'rollout');
  await killInActivity({ runs, workers }, () => ids.stage('killed', 'rl'), 'trainStep', 'learner');
  const { checkpoint } = await run.result();
  expect(checkpoint.weights).toBe(leftAlone);

  const store = await ObjectStore.connect(settings.store);
  const steps = await readSteps(store, 'killed');
  store.close();
  const sampled = steps.filter(({ stage }) => stage === 'rl').map(({ rollout }) => rollout!.staleness);
  expect(sampled).toEqual([0, 1, 2, 2, 2, 2]);
  // The gap is told by how old the samples are: of fresh ones it is that of the engines, of others the policy has moved.
  const gaps = steps.flatMap(({ stage, learner }) =>
    stage === 'rl' ? [learner!.logprobGapByStaleness!] : [],
  );
  expect(gaps.map((of) => of.map(({ staleness }) => staleness))).toEqual(sampled.map((age) => [age]));
  expect(gaps[0]![0]!.mean).toBeLessThan(1e-5);
  for (const [gap] of gaps.slice(1)) expect(gap!.mean).toBeGreaterThan(1e-3);
}, 600_000);
