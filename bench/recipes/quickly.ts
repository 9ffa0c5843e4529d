import type { RecipeRun } from '../../recipes/recipe.ts';

interface Stage {
  kind?: string;
  algorithm?: { minibatch?: number };
  collect?: { kind: string };
  selfPlay?: { proposals: number; samples?: number; labels?: string };
  synthesis?: { tasks?: number; alternatives?: number };
  [field: string]: unknown;
}

/** What a policy can be shown to do on eight tasks at all. */
const GOAL = 0.7;

/** Two tiny steps of each stage, with everything else as it stands: to see that a spec runs, not what it teaches. */
export function quickly(spec: RecipeRun['spec']): RecipeRun['spec'] {
  const { stages, evaluation, ...rest } = spec as unknown as { stages: Stage[]; evaluation: object };
  const small = stages.map((stage) =>
    stage.kind === 'supervised'
      ? {
          ...stage,
          ...(stage.synthesis && { synthesis: { ...stage.synthesis, tasks: 6, alternatives: 1 } }),
          minibatch: 4,
          updatesPerRound: 2,
          maxRounds: 1,
          graduation: { successAtLeast: 0, tasksPerLevel: 4 },
        }
      : {
          ...stage,
          maxSteps: 2,
          groupsPerStep: 4,
          // A tree has the samples that its rounds need.
          ...(stage.collect?.kind !== 'tree' && { numGenerations: 2 }),
          // A step solves what it proposes, and a majority is of three.
          ...(stage.selfPlay && { selfPlay: { ...stage.selfPlay, ...fewProposals(stage.selfPlay) } }),
          ...(stage.selfPlay?.labels === 'majority' && { numGenerations: 3 }),
          algorithm: { ...stage.algorithm, minibatch: 8 },
          graduation: { successAtLeast: GOAL, tasks: 8, everySteps: 2 },
        },
  );
  return { ...rest, stages: small, evaluation: { ...evaluation, count: 8 } };
}

const fewProposals = ({ samples = 1 }: NonNullable<Stage['selfPlay']>) =>
  samples === 1 ? { proposals: 3 } : { proposals: 2, samples: 2 };
