import { hardestGoal, inOrder } from './tiny-spec.ts';

/** A policy that proposes programs and solves them, in seconds: it is shown both roles, and then plays both. */
export function selfPlaySpec({
  maxSteps = 4,
  baseline = 'level',
  ...selfPlay
}: { maxSteps?: number; baseline?: 'level' | 'moving'; trainProposer?: boolean } = {}) {
  const tasks = [{ environment: 'programs', levels: [1, 2, 3] }];
  return {
    seed: 5,
    model: {
      hiddenSize: 64,
      intermediateSize: 128,
      layers: 2,
      attentionHeads: 2,
      keyValueHeads: 1,
      headSize: 32,
    },
    sampling: { maxTurns: 1, maxCompletionTokens: 64 },
    reward: { components: [{ verifier: 'solved', role: 'outcome', weight: 1 }] },
    stages: inOrder(
      {
        kind: 'supervised',
        name: 'warm-start',
        tasks: [{ environment: 'programs', levels: [1, 2, 3, 4, 5, 6] }],
        minibatch: 48,
        updatesPerRound: 120,
        maxRounds: 3,
        optimizer: { learningRate: 0.005 },
        graduation: { successAtLeast: 0, tasksPerLevel: 8 },
      },
      {
        name: 'play',
        tasks,
        groupsPerStep: 18,
        groupsPerWorkflow: 9,
        numGenerations: 4,
        maxSteps,
        selfPlay: { proposals: 12, references: 2, ...selfPlay },
        algorithm: { kind: 'reinforce++', baseline, minibatch: 32 },
        optimizer: { learningRate: 0.001 },
        graduation: { successAtLeast: hardestGoal(33, maxSteps / 2), tasks: 33, everySteps: 2 },
      },
    ),
    evaluation: { tasks, count: 33 },
  };
}
