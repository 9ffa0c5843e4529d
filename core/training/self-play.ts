import { addIncidents } from '../episode/incidents.ts';
import type { Incident } from '../episode/incidents.ts';
import { armName } from '../names.ts';
import type { TrainingPorts } from '../ports.ts';
import { RandomStream } from '../random.ts';
import type { BlobRef, MadeTaskRef } from '../refs.ts';
import type { GroupRequest } from '../requests/rollout.ts';
import type { RewardedProposals } from '../requests/self-play.ts';
import type { Span } from '../requests/span.ts';
import type { GroupResult } from '../requests/verification.ts';
import type { ProposerArm, SelfPlaySpec } from '../schema/stages/self-play.ts';
import type { Arm } from '../schema/tasks.ts';
import { shareOut, summarize } from './evaluation.ts';
import { drawOpponent } from './league.ts';
import type { LeagueRecord } from './league.ts';
import type { MadePlace } from './proposals.ts';
import type { StageInput } from './stage.ts';
import type { SelfPlayFacts } from './step-facts.ts';
import { playedRoles } from './roles.ts';
import { noTasksMade } from './task-source.ts';
import type { MadeTasks } from './task-source.ts';

// Self-play of a proposer and a solver with one policy (Absolute Zero, arXiv 2505.03335): each step the policy is asked for
// tasks, what it proposes is checked and kept, it solves what is kept, and what it proposed is rewarded by how its own
// samples fared. Both are then learnt from in one update. An opponent, which stays as it is, may play one of the roles
// (R-Zero, arXiv 2508.05004): then the policy learns the other one. Of a league of opponents each step draws one.

/** Of the episodes of a step of self-play. */
export interface Played {
  /** As proposals are rewarded. */
  proposed: GroupResult[];
  /** As the solver is: by the verifier, or by the majority of its samples. */
  solved: GroupResult[];
  /** What later steps draw from. */
  made: MadeTasks;
  facts: SelfPlayFacts;
  spans: Span[];
  incidents: Incident[];
}

/** `common` is what all groups of the step have in common. */
export async function playBothRoles(
  ports: TrainingPorts,
  { spec, stage, tasksBefore, opponents }: StageInput,
  { selfPlay: before = noTasksMade(), league = {} }: { selfPlay?: MadeTasks; league?: LeagueRecord },
  step: number,
  common: Omit<GroupRequest, 'group' | 'firstTask' | 'tasks' | 'retries'>,
): Promise<Played> {
  const { groupsPerStep, groupsPerWorkflow: size, arms } = stage;
  const how = stage.selfPlay!;
  const place = { run: spec.run, stage: stage.name, step };
  const random = (role: string): RandomStream =>
    new RandomStream(spec.seed, 'self-play', role, stage.name, step);

  const asked = drawAsked(how, how.arms, before, random('proposer'), tasksBefore + step * groupsPerStep);
  const own = playedRoles(how);
  const opponent = opponents && drawOpponent(opponents, how, league, random('opponent'));
  const other = { ...common, ...(opponent && { checkpoint: opponent.checkpoint }) };
  const proposing = own.proposer ? common : other;
  const solving = {
    ...(own.solver ? common : other),
    ...(how.labels === 'majority' && { votes: true as const }),
  };
  const asking = shareOut(asked, size, { ...proposing, samples: how.samples });
  const proposals = await ports.rollout(asking);
  const groups = trajectoriesOf(proposals);
  const kept = await ports.keepProposals({
    ...place,
    groups,
    arms: how.arms,
    source: before.source,
    mostTasks: how.mostTasks,
  });

  const made: MadeTasks = { source: kept.source, counts: kept.counts };
  // What a solver that learns nothing has solved before says nothing new.
  const count = own.solver ? groupsPerStep : kept.made.length;
  const tasks = drawMade(arms, made, kept.made, count, random('solver'));
  const after = { group: asking.length, firstTask: asked.length };
  const solved = await ports.rollout(shareOut(tasks, size, solving, 0, after));

  const rewarded = await ports.rewardProposals({
    ...place,
    groups,
    proposals: kept.proposals,
    solved: trajectoriesOf(solved),
    reward: spec.reward,
    by: how,
  });
  return {
    // What failed as a whole is told as it is.
    proposed: [...rewarded.groups, ...proposals.filter(({ trajectories }) => trajectories === null)],
    solved: asLabelled(solved, rewarded),
    made,
    facts: { ...rewarded.facts, ...(opponent && { opponent: opponent.stage }) },
    spans: [...proposals.flatMap(({ spans }) => spans), ...kept.spans, ...rewarded.spans],
    incidents: addIncidents(summarize(proposals).incidents, kept.incidents),
  };
}

/** The solver's groups by the labels of the majority, where these count. What of its samples succeeded is said by the verifier. */
function asLabelled(
  solved: readonly GroupResult[],
  { solved: labelled }: Pick<RewardedProposals, 'solved'>,
): GroupResult[] {
  if (!labelled) return [...solved];
  const left = [...labelled];
  return solved.map((one) => {
    if (one.trajectories === null) return one;
    const { spans, incidents, arms } = one;
    return { ...left.shift()!, arms, spans, ...(incidents && { incidents }) };
  });
}

/** The prompts that ask for proposals, the levels in turn, each with references of its level. */
function drawAsked(
  { proposals, references }: Pick<SelfPlaySpec, 'proposals' | 'references'>,
  arms: readonly ProposerArm[],
  { source, counts }: MadeTasks,
  random: RandomStream,
  firstIndex: number,
): MadeTaskRef[] {
  return Array.from({ length: proposals }, (_, i) => {
    const { environment, asks, level } = arms[i % arms.length]!;
    const there = counts[armName({ environment, level })] ?? 0;
    const shown = someOf(there, Math.min(references, there), random);
    return {
      environment,
      split: 'train',
      level: asks,
      index: firstIndex + i,
      references: shown,
      ...(source !== null && { source }),
    };
  });
}

/** The tasks of a step's solver: all that the step has made, and earlier ones, each level as often, as far as there are any. */
function drawMade(
  arms: readonly Arm[],
  { source, counts }: MadeTasks,
  fresh: readonly MadePlace[],
  count: number,
  random: RandomStream,
): MadeTaskRef[] {
  if (source === null) return [];
  const drawn: MadePlace[] = [...fresh];
  const earlier = arms.map((arm) => {
    const own = fresh.filter(({ environment, level }) => armName({ environment, level }) === armName(arm));
    const before = (counts[armName(arm)] ?? 0) - own.length;
    return random.shuffle(Array.from({ length: before }, (_, index) => ({ ...arm, index })));
  });
  for (let i = 0; drawn.length < count && earlier.some(({ length }) => length > 0); i++) {
    const next = earlier[i % earlier.length]!.pop();
    if (next) drawn.push(next);
  }
  return drawn.map((one) => ({ ...one, split: 'train', source }));
}

/** Different places below `there`. */
function someOf(there: number, count: number, random: RandomStream): number[] {
  const places = new Set<number>();
  while (places.size < count) places.add(random.int(0, there - 1));
  return [...places];
}

const trajectoriesOf = (results: readonly GroupResult[]): BlobRef[] =>
  results.flatMap(({ trajectories }) => (trajectories === null ? [] : [trajectories]));
