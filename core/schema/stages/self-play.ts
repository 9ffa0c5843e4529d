import { z } from 'zod';
import { amount, count } from '../../fields.ts';
import { LEAST_VOTERS } from '../../reward/votes.ts';
import { trainedRoles } from '../../training/roles.ts';
import type { Refuse, SpecEnvironments } from '../check.ts';
import type { Path } from '../strict.ts';
import type { Arm, WrittenTasks } from '../tasks.ts';
import { checkEarlierPolicy, opponentSchema } from './earlier-policy.ts';

/** What a step of self-play may make of proposals: they are compared with each other. */
const MOST_PROPOSALS = 4096;

/**
 * Self-play of a proposer and a solver, which are one policy: Absolute Zero (Zhao et al. 2025, arXiv 2505.03335), with the
 * uncertainty reward and the repetition penalty of R-Zero (Huang et al. 2025, arXiv 2508.05004) as choices.
 */
export const selfPlaySchema = z
  .strictObject({
    proposals: count(MOST_PROPOSALS, 'take more steps').describe(
      'Prompts per step that ask the policy for a task, in equal parts over the levels of `tasks`.',
    ),
    samples: count(64, 'ask with more prompts').default(1).describe('Proposals per such prompt.'),
    references: count(16, 'the prompt shows all of them', 0)
      .default(6)
      .describe('Earlier proposals of the same level that a prompt shows, as far as there are any.'),
    learnability: z
      .enum(['absolute-zero', 'r-zero'])
      .default('absolute-zero')
      .describe(
        'Reward of a proposal by the part p of the samples that solve it. absolute-zero: 1 − p, and 0 where p is 0. r-zero: 1 − 2·|p − 1/2|.',
      ),
    labels: z
      .enum(['verifier', 'majority'])
      .default('verifier')
      .describe(
        'What the solver is paid for. verifier: what the environment says. majority: the answer that most of its own samples of the task give (R-Zero); p is then the share of the majority among the votes, and what the environment says is only measured.',
      ),
    filter: z
      .strictObject({
        min: z.number().min(0).max(1).default(0.3).describe('Least share of the votes, itself included.'),
        max: z.number().min(0).max(1).default(0.8).describe('Largest share, itself included.'),
      })
      .optional()
      .describe(
        'The solver learns from tasks alone whose majority has a share of the votes within these bounds (R-Zero). Needs labels majority. Absent: from every task with a label.',
      ),
    repetitionPenalty: amount(10, 'it would be all that counts')
      .default(1)
      .describe(
        "Weight of the share of the step's proposals that resemble this one, taken off its reward (R-Zero).",
      ),
    unsolvedReward: z
      .number()
      .min(-10)
      .max(0)
      .optional()
      .describe(
        "Reward of a new task that no sample solves, before its repetition penalty; not below invalidReward and malformedReward. Absent: 0, by which it does better than what is no task, as in Absolute Zero's equation 4; its authors' code has −0.5.",
      ),
    leastValidReward: z
      .number()
      .min(-10)
      .max(0)
      .optional()
      .describe(
        'Reward of a new task at least, whatever its repetition penalty; not below invalidReward and malformedReward. Absent: no bound.',
      ),
    invalidReward: z
      .number()
      .min(-10)
      .max(0)
      .default(-0.5)
      .describe('Reward of a proposal that is no new task: refused by the sandbox, or known already.'),
    malformedReward: z
      .number()
      .min(-10)
      .max(0)
      .default(-1)
      .describe('Reward of a proposal that is not written as was asked.'),
    trainProposer: z
      .boolean()
      .default(true)
      .describe('Train on proposals, too. false: the proposer is fixed but for what solving teaches.'),
    proposer: opponentSchema.describe(
      'The policy that proposes, or a league of several, which stay as they are: the stage trains the solver alone. Default: its own.',
    ),
    solver: opponentSchema.describe(
      'The policy that solves, or a league of several, which stay as they are, and solve new tasks alone: the stage trains the proposer alone. Default: its own.',
    ),
    mostTasks: count(4096, 'a worker reads all of them')
      .default(1024)
      .describe('Tasks of a level that are kept, at most; the oldest are dropped.'),
  })
  .optional()
  .describe(
    'The policy also proposes the tasks that it learns to solve, in turns with solving them; see docs/self-play.md.',
  );

export type SelfPlaySpec = NonNullable<z.output<typeof selfPlaySchema>>;

/** A level that a policy is asked at, and that of the tasks which it makes there. */
export interface ProposerArm {
  environment: string;
  asks: number;
  level: number;
}

/** Those that make tasks of the stage's levels; an environment without any has none. */
export const proposerArms = (arms: readonly Arm[], environments: SpecEnvironments): ProposerArm[] =>
  arms.flatMap(({ environment, level }) => {
    const proposes = environments.get(environment)?.proposals?.levels ?? {};
    const asking = Object.entries(proposes).find(([, made]) => made === level);
    return asking ? [{ environment, asks: Number(asking[0]), level }] : [];
  });

/** What self-play does not go with. `at` is the path of the stage. */
export function checkSelfPlay(
  stage: {
    tasks: WrittenTasks;
    groupsPerStep: number;
    numGenerations: number;
    collect: { kind: string };
    selfPlay?: SelfPlaySpec | undefined;
  },
  earlier: readonly { name: string }[],
  beside: {
    verification: boolean;
    refills: number;
    greedy: boolean;
    hindsight: boolean;
    /** Rewards are compared with others of their own task alone. */
    perTask: boolean;
    /** A server, or a store of turns, samples for rollout workers. */
    elsewhere: boolean;
  },
  at: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  const { selfPlay, groupsPerStep, collect } = stage;
  if (!selfPlay) return;
  const path = [...at, 'selfPlay'];
  stage.tasks.forEach(({ environment, levels }, i) => {
    const known = environments.get(environment);
    if (!known) return;
    const made = Object.values(known.proposals?.levels ?? {});
    const missing = levels.filter((level) => known.levels.includes(level) && !made.includes(level));
    if (missing.length > 0)
      refuse(
        [...at, 'tasks', i, 'levels'],
        `no policy can make tasks of "${environment}" at level ${missing.join(', ')}; it can at: ${made.join(', ') || 'none'}`,
      );
  });
  if (selfPlay.proposals * selfPlay.samples > groupsPerStep)
    refuse(
      [...path, 'proposals'],
      `makes up to ${selfPlay.proposals * selfPlay.samples} new tasks a step, and each is solved in it: raise groupsPerStep above its ${groupsPerStep}, or lower it`,
    );
  checkOpponent(selfPlay, earlier, beside, path, refuse);
  checkLabels(selfPlay, stage.numGenerations, at, refuse);
  if (selfPlay.mostTasks < groupsPerStep)
    refuse([...path, 'mostTasks'], `must hold those of a step: at least groupsPerStep, ${groupsPerStep}`);
  const worst = Math.max(selfPlay.invalidReward, selfPlay.malformedReward);
  for (const name of ['leastValidReward', 'unsolvedReward'] as const)
    if ((selfPlay[name] ?? 0) < worst)
      refuse([...path, name], `pays a valid proposal less than one that is none: give at least ${worst}`);
  if (collect.kind !== 'on-policy')
    refuse(path, `needs both roles in one step: leave out collect, which is ${collect.kind}`);
  if (beside.verification)
    refuse(
      path,
      'rewards proposals in the step that makes them, before late verdicts: leave out verification',
    );
  if (beside.perTask && trainedRoles(selfPlay).proposer && selfPlay.samples === 1)
    refuse(
      [...path, 'samples'],
      'leaves a proposal nothing to be compared with: take the algorithm reinforce++ with baseline level or moving, or 2 samples or more',
    );
  if (beside.refills > 0 || beside.greedy || beside.hindsight)
    refuse(
      path,
      'does not go with methods that draw tasks again, sample greedily, or correct episodes: choose grpo or reinforce++',
    );
}

/** Labels of the majority, and the filter by its share. */
function checkLabels(selfPlay: SelfPlaySpec, voters: number, at: Path, refuse: Refuse): void {
  const { labels, learnability, filter, solver } = selfPlay;
  const path = [...at, 'selfPlay'];
  if (labels === 'majority' && voters < LEAST_VOTERS)
    refuse(
      [...at, 'numGenerations'],
      `${voters} samples make no majority that one could disagree with: give at least ${LEAST_VOTERS}, or set selfPlay.labels to verifier`,
    );
  if (labels === 'majority' && learnability === 'absolute-zero' && trainedRoles(selfPlay).proposer)
    refuse(
      [...path, 'learnability'],
      'pays most where each sample gives another answer, and labels of the majority tell no task without an answer from a hard one: set it to "r-zero"',
    );
  if (!filter) return;
  if (labels !== 'majority')
    refuse([...path, 'filter'], 'goes by votes, and none are cast: set labels to majority, or leave it out');
  if (solver)
    refuse(
      [...path, 'filter'],
      'does nothing beside a solver that stays as it is, and learns from no task: leave it out',
    );
  if (filter.min > filter.max)
    refuse([...path, 'filter', 'min'], `leaves no task: give at most max, which is ${filter.max}`);
}

/** An opponent plays one role, and the policy learns the other. */
function checkOpponent(
  { proposer, solver, trainProposer }: SelfPlaySpec,
  earlier: readonly { name: string }[],
  { elsewhere }: { elsewhere: boolean },
  path: Path,
  refuse: Refuse,
): void {
  checkEarlierPolicy(proposer, earlier, [...path, 'proposer'], refuse);
  checkEarlierPolicy(solver, earlier, [...path, 'solver'], refuse);
  if (proposer && solver)
    refuse([...path, 'solver'], 'leaves the stage nothing to train beside a proposer: leave one of them out');
  if ((proposer || solver) && !trainProposer)
    refuse(
      [...path, 'trainProposer'],
      solver
        ? 'leaves nothing to train beside a solver that stays as it is: leave one of them out'
        : 'does nothing beside a proposer that stays as it is: leave it out',
    );
  if ((proposer || solver) && elsewhere)
    refuse(
      [...path, proposer ? 'proposer' : 'solver'],
      'samples with two policies in a step, and only the decoder of rollout workers holds two: leave out policy',
    );
}
