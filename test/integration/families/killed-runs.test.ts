import { afterAll, beforeAll, expect, test } from 'vitest';
import { ids } from '../../../core/names.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { storedFacts } from '../../support/stored-facts.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// Runs whose rollout worker is killed in the middle of its episodes come to the same end.

interface Family {
  environment: string;
  /** Of its tools the one that is called most. */
  tool: string;
  outcome: string;
  sampling: { maxTurns: number; maxCompletionTokens: number };
  maxPositions: number;
}

const FAMILIES: Family[] = [
  // Its state passes from call to call.
  {
    environment: 'retail',
    tool: 'say',
    outcome: 'retail',
    sampling: { maxTurns: 4, maxCompletionTokens: 90 },
    maxPositions: 256,
  },
  {
    environment: 'search-qa',
    tool: 'search',
    outcome: 'squad-em',
    sampling: { maxTurns: 4, maxCompletionTokens: 300 },
    maxPositions: 512,
  },
];

function specOf({ environment, outcome, sampling, maxPositions }: Family) {
  const tiny = tinySpec({ maxSteps: 3, environment, groupsPerStep: 32, groupsPerWorkflow: 32 });
  const [warmStart, rl] = tiny.stages;
  return {
    ...tiny,
    model: { ...tiny.model, hiddenSize: 48, intermediateSize: 96, maxPositions },
    sampling,
    reward: {
      components: [
        { verifier: outcome, role: 'outcome', weight: 1 },
        { verifier: 'format', role: 'bonus', weight: 0.2 },
        { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
      ],
    },
    // One round of it: enough to make calls that the environment refuses or takes.
    stages: [{ ...warmStart, tasks: rl.tasks, updatesPerRound: 120 }, rl],
  };
}

let installation: TestInstallation;
let store: ObjectStore;

beforeAll(async () => {
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);

afterAll(async () => {
  store?.close();
  await installation?.remove();
});

test.each(FAMILIES)(
  'a run of $environment whose rollout worker is killed in its midst ends with the same weights',
  async (family) => {
    const { environment, tool } = family;
    const [alone, hit] = [`${environment}-left-alone`, `${environment}-killed`];
    const { runs, workers } = installation;
    const leftAlone = await (await runs.start(alone, specOf(family))).result();
    const killed = await runs.start(hit, specOf(family));
    await killInActivity({ workers, runs }, (step) => ids.group(hit, 'rl', step, 0), 'advance', 'rollout');
    const result = await killed.result();

    expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);
    expect(await storedFacts(store, hit)).toEqual(await storedFacts(store, alone));
    const called = (await readSteps(store, hit)).map(({ rollout }) => rollout?.calls[tool] ?? 0);
    expect(Math.max(...called)).toBeGreaterThan(50);
  },
  400_000,
);
