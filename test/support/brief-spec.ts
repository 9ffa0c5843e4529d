import { hardestGoal, tinySpec } from './tiny-spec.ts';

/** The tiny curriculum, tinier: two steps of four groups of four, small reports; for tests of what happens around it. */
export function briefSpec(options: { environment?: string; maxSteps?: number } = {}) {
  const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4, ...options });
  const [stage] = tiny.stages;
  return {
    ...tiny,
    // Just enough for a policy that calls its tool.
    warmStart: {
      ...tiny.warmStart,
      minibatch: 16,
      updatesPerRound: 100,
      maxRounds: 1,
      optimizer: { learningRate: 0.01 },
      graduation: { successAtLeast: 0, tasksPerLevel: 8 },
    },
    stages: [
      {
        ...stage!,
        numGenerations: 4,
        groupsPerWorkflow: 1,
        graduation: { successAtLeast: hardestGoal(8, stage!.maxSteps / 2), tasks: 8, everySteps: 2 },
      },
    ],
    evaluation: { ...tiny.evaluation, count: 8 },
  };
}
