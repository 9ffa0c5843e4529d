/** A goal that so many tasks can just show, if all of them are solved at one of the looks. */
export const hardestGoal = (tasks: number, looks: number): number =>
  0.999 * (0.1 / Math.ceil(looks)) ** (1 / tasks);

/** The stages of a spec, each with the fields that it has. */
export const inOrder = <WarmStart, Rl>(warmStart: WarmStart, rl: Rl): [WarmStart, Rl] => [warmStart, rl];

/** A curriculum that exercises everything in seconds: two rounds of warm start, a few RL steps, small reports. */
export function tinySpec(
  options: {
    maxSteps?: number;
    environment?: string;
    groupsPerStep?: number;
    groupsPerWorkflow?: number;
    lora?: { rank: number };
  } = {},
) {
  const { maxSteps = 4, environment = 'calculator', groupsPerStep = 8, groupsPerWorkflow = 8 } = options;
  const tasks = [{ environment, levels: [1] }];
  return {
    seed: 5,
    model: {
      hiddenSize: 32,
      intermediateSize: 64,
      layers: 2,
      attentionHeads: 2,
      keyValueHeads: 1,
      headSize: 16,
      ...(options.lora && { lora: options.lora }),
    },
    sampling: { maxTurns: 3, maxCompletionTokens: 40 },
    reward: {
      components: [
        { verifier: 'exact-match', role: 'outcome', weight: 1 },
        { verifier: 'format', role: 'bonus', weight: 0.2 },
        { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
      ],
    },
    stages: inOrder(
      {
        kind: 'supervised',
        name: 'warm-start',
        tasks: [{ environment: 'calculator', levels: [1] }],
        minibatch: 32,
        updatesPerRound: 40,
        maxRounds: 2,
        optimizer: { learningRate: 0.005 },
        graduation: { successAtLeast: 0, tasksPerLevel: 16 },
      },
      {
        name: 'rl',
        tasks,
        groupsPerStep,
        groupsPerWorkflow,
        numGenerations: 8,
        maxSteps,
        algorithm: { minibatch: 32, beta: 0.01, numIterations: 2 },
        graduation: { successAtLeast: hardestGoal(32, maxSteps / 2), tasks: 32, everySteps: 2 },
      },
    ),
    evaluation: { tasks, count: 32 },
  };
}

/** The same with four child workflows of a step, long enough to be hit, whose episodes are collected so. */
export function tinySpecCollecting(collect: object) {
  const tiny = tinySpec({ maxSteps: 6, groupsPerStep: 32, groupsPerWorkflow: 8 });
  const [warmStart, rl] = tiny.stages;
  const algorithm = { ...rl.algorithm, importanceCap: 2 };
  return { ...tiny, stages: inOrder(warmStart, { ...rl, algorithm, collect }) };
}
