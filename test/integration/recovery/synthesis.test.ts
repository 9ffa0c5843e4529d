import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { findSynthesis } from '../../../store/training/synthesis.ts';
import { DONE } from '../../support/ended.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { synthesisSpec } from '../../support/synthesis-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// Data that a stage makes of verified trajectories: real servers and workers, and SIGKILL.

let installation: TestInstallation;
const SPEC = synthesisSpec();
const STAGE = 'continual-pre-training';

beforeAll(async () => {
  installation = await startTestInstallation();
}, 600_000);

afterAll(() => installation?.remove());

test('killed while it makes its data, and while it learns from that, a run ends with the same data and weights', async () => {
  const { runs, workers, settings } = installation;
  const whole = await (await runs.start('whole', SPEC)).result();
  expect(whole.end).toEqual(DONE);

  const run = await runs.start('killed', SPEC);
  const stage = (): string => ids.stage('killed', STAGE);
  await killInActivity({ runs, workers }, stage, 'synthesize', 'orchestrator');
  await killInActivity({ runs, workers }, stage, 'trainStep', 'learner');
  const killed = await run.result();
  expect(killed.end).toEqual(DONE);
  expect(killed.checkpoint.weights).toBe(whole.checkpoint.weights);

  const store = await ObjectStore.connect(settings.store);
  const madeBy = async (name: string) => {
    const { data, facts, tasks } = (await findSynthesis(store, { run: name, stage: STAGE }))!;
    const objects = await store.list(`runs/${name}/synthesis/`);
    return {
      sha256: data.sha256,
      facts,
      tasks,
      objects: objects.map(({ key }) => key.split('/').at(-1)!).toSorted(),
    };
  };
  const made = await madeBy('killed');
  expect(made).toEqual(await madeBy('whole'));
  expect(made.objects).toEqual([`${made.sha256}.jsonl`, 'made.json'].toSorted());
  expect(made.facts.choices).toBeGreaterThan(192);
  const steps = await readSteps(store, 'killed');
  expect(steps.map(({ stage: of, synthesis }) => [of, synthesis?.source])).toEqual([
    [STAGE, made.sha256],
    ['sft', undefined],
  ]);
  // What a person looks at: lines of data as anybody could have given them.
  const lines = new TextDecoder()
    .decode(await store.get((await store.head(`runs/killed/synthesis/${STAGE}/${made.sha256}.jsonl`))!))
    .trim()
    .split('\n');
  const { first, plans, choices } = made.facts;
  expect(lines).toHaveLength(first + plans + choices);
  store.close();
}, 600_000);
