import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ledgerPrefix, rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { DONE } from '../../support/ended.ts';

const TASKS = 24;

let installation: TestInstallation;
let store: ObjectStore;
let verdicts: string;

beforeAll(async () => {
  verdicts = path.join(process.env['TMPDIR'] ?? '/tmp', `gradus-verdicts-${process.pid}`);
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool', 'simulation'], ['rollout'], ['learner']],
    env: {
      GRADUS_ENVIRONMENTS: path.resolve('test/support/ladder-calculator.ts'),
      GRADUS_TEST_VERDICTS: verdicts,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 240_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(verdicts, { force: true });
});

async function objects<T>(prefix: string): Promise<T[]> {
  const keys = (await store.list(prefix)).map(({ key }) => key);
  return Promise.all(keys.map(async (key) => (await store.getJson((await store.head(key))!)) as T));
}

test('a checkpoint is measured by the highest tier that all can have, at a price that the ledger shows', async () => {
  const brief = briefSpec({ environment: 'calculator-ladder' });
  const [warmStart, stage] = brief.stages;
  const spec = {
    ...brief,
    stages: [{ ...warmStart, tasks: [{ environment: 'calculator-ladder', levels: [1] }] }, stage],
    reward: { components: [{ verifier: 'ladder', role: 'outcome' }] },
    verification: {
      rungs: [
        { verifier: 'is-number', passAtLeast: 0.5 },
        { verifier: 'near', passAtLeast: 0.3, concurrency: 4 },
        // No worker serves it here; what its budget of none defers must not hold the run up.
        { verifier: 'exact', passAtLeast: 0.9, budget: { count: 0 } },
      ],
    },
    evaluation: { ...brief.evaluation, count: TASKS },
  };
  const { end, before, after } = await (await installation.runs.start('measured', spec)).result();
  expect(end).toEqual(DONE);

  const entries = (await objects<LedgerEntry[]>(ledgerPrefix('measured'))).flat();
  for (const [name, report] of Object.entries({ before, after })) {
    const prefix = rolloutsPrefix('measured', name);
    const keys = (await store.list(prefix)).map(({ key }) => key).filter((key) => key.includes('.judged'));
    const groups = await Promise.all(
      keys.map(async (key) => loadTrajectories(store, (await store.head(key))!)),
    );
    const outcomes = groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome!));
    expect(outcomes).toHaveLength(TASKS);
    const said = outcomes.flatMap((outcome) => ('components' in outcome ? outcome.components : []));
    // What is a number has been judged by the tier, the rest stays with what the lowest one said of it.
    const passing = said.filter(({ version }) => version === 'near@1');
    const failing = said.filter(({ version }) => version === 'is-number@1');
    expect(passing.length).toBeGreaterThan(0);
    expect(failing.every(({ score }) => score === 0)).toBe(true);
    expect(passing.length + failing.length).toBe(said.length);
    const successes = passing.filter(({ score }) => score! >= 0.3).length;
    const trials = report!.arms[0]!.trials;
    expect(report!.arms).toMatchObject([{ successes }]);
    expect(trials).toBeGreaterThanOrEqual(passing.length);
    expect(entries.some((entry) => entry.kind === 'verdict' && entry.stage === name)).toBe(true);
  }

  const ran = (await readFile(verdicts, 'utf8')).trim().split('\n');
  const paid = entries.filter((entry) => entry.kind === 'verdict' && entry.spent !== null);
  expect(paid).toHaveLength(ran.length);
});
