import calculator from '../examples/calculator.json' with { type: 'json' };

/** What can be reached by no run of a few steps, and is legal all the same. */
const OUT_OF_REACH = 0.99;

/**
 * The main job's shapes and sizes, cut to a fixed amount of work: one round of warm start, `steps` RL steps of the
 * first stage, and reports of `reports` tasks.
 */
export function cutCalculator({
  updates,
  steps,
  reports,
}: {
  updates: number;
  steps: number;
  reports: number;
}) {
  return {
    ...calculator,
    warmStart: {
      ...calculator.warmStart,
      updatesPerRound: updates,
      maxRounds: 1,
      graduation: { ...calculator.warmStart.graduation, successAtLeast: 0 },
    },
    stages: calculator.stages.slice(0, 1).map((stage) => ({
      ...stage,
      maxSteps: steps,
      graduation: { ...stage.graduation, successAtLeast: OUT_OF_REACH },
    })),
    evaluation: { ...calculator.evaluation, count: reports },
  };
}

/** `12 RL steps of 64 × 8 episodes` */
export function sizeOf(spec: {
  stages: readonly { maxSteps: number; groupsPerStep: number; numGenerations: number }[];
}): string {
  return spec.stages
    .map((stage) => `${stage.maxSteps} RL steps of ${stage.groupsPerStep} × ${stage.numGenerations} episodes`)
    .join(', ');
}
