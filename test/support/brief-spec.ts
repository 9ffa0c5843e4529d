import { hardestGoal, inOrder, tinySpec } from './tiny-spec.ts';

/** The tiny curriculum, tinier: two steps of four groups of four, small reports; for tests of what happens around it. */
export function briefSpec(options: { environment?: string; maxSteps?: number } = {}) {
  const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4, ...options });
  const [warmStart, stage] = tiny.stages;
  return {
    ...tiny,
    stages: inOrder(
      // Just enough for a policy that calls its tool.
      {
        ...warmStart,
        minibatch: 16,
        updatesPerRound: 100,
        maxRounds: 1,
        optimizer: { learningRate: 0.01 },
        graduation: { successAtLeast: 0, tasksPerLevel: 8 },
      },
      {
        ...stage,
        numGenerations: 4,
        groupsPerWorkflow: 1,
        graduation: { successAtLeast: hardestGoal(8, stage.maxSteps / 2), tasks: 8, everySteps: 2 },
      },
    ),
    evaluation: { ...tiny.evaluation, count: 8 },
  };
}
