/** A policy that is shown what was made of verified trajectories, and then demonstrations: in seconds. */
export function synthesisSpec() {
  const tasks = [{ environment: 'calculator', levels: [1, 2] }];
  const stage = {
    kind: 'supervised',
    tasks,
    minibatch: 16,
    updatesPerRound: 8,
    maxRounds: 1,
    optimizer: { learningRate: 0.005 },
    graduation: { successAtLeast: 0, tasksPerLevel: 16 },
  };
  return {
    seed: 5,
    model: {
      hiddenSize: 32,
      intermediateSize: 64,
      layers: 2,
      attentionHeads: 2,
      keyValueHeads: 1,
      headSize: 16,
      maxPositions: 512,
    },
    sampling: { maxTurns: 4, maxCompletionTokens: 60 },
    reward: { components: [{ verifier: 'exact-match', role: 'outcome', weight: 1 }] },
    stages: [
      {
        ...stage,
        name: 'continual-pre-training',
        synthesis: { kind: 'actions', tasks: 192, alternatives: 2 },
      },
      { ...stage, name: 'sft' },
    ],
    evaluation: { tasks, count: 16 },
  } as const;
}
