import type { Episode, RolloutGroup } from '../core/episode.ts';
import { messageOf } from '../core/errors.ts';
import { armName } from '../core/names.ts';
import { noOutcomes, trainableReward } from '../core/outcome.ts';
import type { Outcome } from '../core/outcome.ts';
import type { TaskRef } from '../core/refs.ts';
import type { ArmTally, GroupRequest, GroupResult, VerifyRequest } from '../core/requests.ts';
import { composeReward, succeeded } from '../core/reward.ts';
import type { VerdictOfVerifier } from '../core/reward.ts';
import type { RewardSpec } from '../core/spec.ts';
import type { Candidate, Environment, Verifier } from '../environments/contract.ts';
import { environmentOf } from './environment-of.ts';
import type { Environments } from './environment-of.ts';
import type { ObjectStore } from './store/object-store.ts';
import { saveTrajectories } from './store/trajectories.ts';
import { mergeParts } from './trajectory-parts.ts';
import type { Durable } from './durable.ts';

export interface VerifierDependencies {
  store: ObjectStore;
  environments: Environments;
}

export type VerifierActivities = Durable<ReturnType<typeof createVerification>>;

export function createVerification(deps: VerifierDependencies) {
  return {
    /** Judges a group's episodes, keeps them with their components as one object, and returns what the stage needs. */
    async verifyGroup({ group: request, parts }: VerifyRequest, signal: AbortSignal): Promise<GroupResult> {
      const start = Date.now();
      const group = await mergeParts(deps.store, parts);
      for (const episode of group.episodes) {
        const { ref } = group.tasks[episode.task]!;
        const environment = environmentOf(deps.environments, ref.environment);
        episode.outcome = await judge(environment, ref, episode, request.reward, signal);
      }
      const trajectories = await saveTrajectories(deps.store, request, group, { signal });
      return {
        trajectories,
        ...tally(request, group),
        spans: [{ part: 'verification', start, end: Date.now() }],
      };
    },
  };
}

async function judge(
  environment: Environment,
  ref: TaskRef,
  episode: Episode,
  reward: RewardSpec,
  signal: AbortSignal,
): Promise<Outcome> {
  const { status } = episode;
  if (status.kind === 'failed') return { kind: 'failed', boundary: status.boundary, reason: status.reason };
  const candidate: Candidate = {
    task: environment.task(ref),
    episode,
    answer: status.kind === 'answered' ? status.answer : null,
    tools: environment.tools.map((tool) => tool.name),
  };
  const verdicts: VerdictOfVerifier[] = [];
  for (const { verifier: name } of reward.components) {
    const verifier = environment.verifiers.find((other) => other.name === name);
    verdicts.push(
      verifier
        ? await ask(verifier, candidate, signal)
        : { verifier: name, version: '', score: null, evidence: `${environment.name} has no such verifier` },
    );
  }
  const composed = composeReward(reward.components, verdicts);
  if (composed.kind !== 'scored' || status.kind !== 'truncated') return composed;
  return { ...composed, kind: 'truncated', limit: status.limit };
}

/** A verifier that throws, or says what is no score, abstains: its error is never a zero. */
async function ask(
  verifier: Verifier,
  candidate: Candidate,
  signal: AbortSignal,
): Promise<VerdictOfVerifier> {
  const { name, version } = verifier;
  if (verifier.tier !== 'fast')
    return { verifier: name, version, score: null, evidence: `${verifier.tier} tiers have no worker yet` };
  try {
    const verdict = await verifier.verify(candidate, { signal });
    if (verdict.kind === 'abstain') return { verifier: name, version, score: null, evidence: verdict.reason };
    const { score, evidence } = verdict;
    if (!(score >= 0 && score <= 1)) {
      return { verifier: name, version, score: null, evidence: `said ${score}, which is no score in [0, 1]` };
    }
    return { verifier: name, version, score, ...(evidence === undefined ? {} : { evidence }) };
  } catch (error) {
    signal.throwIfAborted();
    return { verifier: name, version, score: null, evidence: `threw: ${messageOf(error)}` };
  }
}

function tally(
  request: GroupRequest,
  group: RolloutGroup,
): Omit<GroupResult, 'trajectories' | 'spans' | 'failure'> {
  const outcomes = noOutcomes();
  const arms = new Map<string, ArmTally>();
  const perTask = group.tasks.map(() => ({ successes: 0, trials: 0 }));
  const result = { rewardSum: 0, rewardCount: 0, sampledTokens: 0, turns: 0 };
  for (const episode of group.episodes) {
    const outcome = episode.outcome!;
    outcomes[outcome.kind]++;
    result.sampledTokens += episode.mask.reduce<number>((sum, bit) => sum + bit, 0);
    result.turns += episode.turns.length;
    const reward = trainableReward(outcome, request.reward.truncated);
    if (reward !== null) {
      result.rewardSum += reward;
      result.rewardCount++;
    }
    const success = succeeded(request.reward.components, outcome);
    if (success === null) continue;
    const { environment, level } = group.tasks[episode.task]!.ref;
    const arm = { environment, level };
    const sum = arms.get(armName(arm)) ?? { arm, successes: 0, trials: 0 };
    arms.set(armName(arm), sum);
    for (const counted of [sum, perTask[episode.task]!]) {
      counted.trials++;
      if (success) counted.successes++;
    }
  }
  return {
    ...result,
    arms: [...arms.values()],
    outcomes,
    // An evaluation's tasks are never trained on.
    failedTasks: group.tasks
      .filter(({ ref }, i) => ref.split === 'train' && 2 * perTask[i]!.successes < perTask[i]!.trials)
      .map(({ ref }) => ref),
  };
}
