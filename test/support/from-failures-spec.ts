import { hardestGoal } from './tiny-spec.ts';

/** A policy that learns the calculator in two phases, in seconds: the second has tasks made of what the first failed. */
export function fromFailuresSpec({ maxSteps = 4, ...how }: { maxSteps?: number; part?: number } = {}) {
  const tasks = [{ environment: 'calculator', levels: [1, 2] }];
  const phase = {
    tasks,
    groupsPerStep: 8,
    groupsPerWorkflow: 4,
    numGenerations: 4,
    algorithm: { kind: 'ppo', minibatch: 16 },
    optimizer: { learningRate: 0.001 },
    retryFailures: 0.125,
  };
  const graduation = (steps: number) => ({
    successAtLeast: hardestGoal(32, steps / 2),
    tasks: 32,
    everySteps: 2,
  });
  return {
    seed: 5,
    model: {
      hiddenSize: 32,
      intermediateSize: 64,
      layers: 2,
      attentionHeads: 2,
      keyValueHeads: 1,
      headSize: 16,
    },
    sampling: { maxTurns: 4, maxCompletionTokens: 60 },
    reward: {
      components: [
        { verifier: 'exact-match', role: 'outcome', weight: 1 },
        // A policy that solves nothing yet has something for its critic to learn.
        { verifier: 'format', role: 'bonus', weight: 0.2, gatedBy: null },
      ],
    },
    stages: [
      {
        kind: 'supervised',
        name: 'warm-start',
        tasks,
        minibatch: 32,
        updatesPerRound: 40,
        maxRounds: 2,
        optimizer: { learningRate: 0.005 },
        graduation: { successAtLeast: 0, tasksPerLevel: 16 },
      },
      { ...phase, name: 'phase-1', maxSteps: 2, graduation: graduation(2) },
      {
        ...phase,
        name: 'phase-2',
        maxSteps,
        // A critic of two steps knows little, and what it says is near 0.
        fromFailures: {
          stage: 'phase-1',
          variations: 3,
          mostFailures: 16,
          values: { from: -1, to: 1 },
          ...how,
        },
        graduation: graduation(maxSteps),
      },
    ],
    evaluation: { tasks, count: 32 },
  } as const;
}
