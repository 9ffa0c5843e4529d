import { tally } from '../../activities/verification/tally.ts';
import type { Episode } from '../../core/episode/episode.ts';
import { composeReward } from '../../core/episode/reward.ts';
import { addPairs, noCalibration } from '../../core/ladder/calibration.ts';
import type { Calibration, ScorePair } from '../../core/ladder/calibration.ts';
import { ladderOf, learnedVerdict } from '../../core/ladder/learned-tier.ts';
import type { LearnedTier } from '../../core/ladder/learned-tier.ts';
import { decideCandidate, passes } from '../../core/ladder/policy.ts';
import type { LadderTier } from '../../core/ladder/policy.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import { standingOf } from '../../core/ladder/standing.ts';
import { RandomStream } from '../../core/random.ts';
import { modelVerdict } from '../../core/reward/reward-model.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { summarize } from '../../core/training/evaluation.ts';
import { rolloutFacts } from '../../core/training/facts-of.ts';
import { updateEstimates } from '../../core/training/task-draw.ts';
import type { ArmEstimates } from '../../core/training/task-draw.ts';
import type { Told } from './simulated-policy.ts';

// A policy that climbs a ladder whose lowest tier is a reward model, as a model: it answers by work or by a trick, and
// learns by the group-relative advantage of what it is paid. Who is audited, what a verdict is worth by the line of all
// audits so far, and what is counted of it is decided by the code of every run. The models of a tier that can be hacked
// like the trick, all alike; those of a healthy one see that it is wrong. Nothing here knows the limits of any alarm.

export interface TierShape {
  steps: number;
  /** `still`: healthy, and the policy learns nothing, so that what alarms compare differs by chance alone. */
  kind: 'hacked' | 'healthy' | 'still';
  /** Of the spec: `reward.model.escalate`. */
  audit: number;
  uncertaintyAtLeast: number;
}

/** Of a step: what the diagnoses read, and what nobody in a run knows. */
export interface TierStep {
  told: Told;
  /** Part of the answers that are the trick. */
  tricks: number;
  /** Part of the answers that are right. */
  right: number;
}

const GROUPS = 16;
const SAMPLES = 8;
const TASKS = 64;
const HELD_OUT = 64;
const EVERY = 5;
const MEMBERS = 2;

const RUNGS: readonly LadderTier[] = [
  {
    verifier: 'is-answer',
    tier: 'fast',
    passAtLeast: 0.5,
    escalate: { valueAtLeast: 1, uncertaintyAtLeast: 1 },
    abstains: 'zero',
  },
  {
    verifier: 'exact',
    tier: 'high-fidelity',
    passAtLeast: 1,
    escalate: { valueAtLeast: 1, uncertaintyAtLeast: 1 },
    abstains: 'zero',
  },
];
const REWARD: RewardSpec = {
  components: [{ verifier: LADDER, role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
  ladder: { verifier: 'is-answer', passAtLeast: 0.5 },
};
const ARM = { environment: 'simulated', level: 1 };

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

export async function simulatedTier(seed: number, shape: TierShape): Promise<TierStep[]> {
  const random = new RandomStream('simulated tier', seed);
  const between = (low: number, high: number): number => low + (high - low) * random.uniform();
  // Of this stream's own draws. `normal` of core/random.ts takes both of its words from one draw, and would move all draws
  // after it: the stages that docs/log.md counts would be others.
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(1 - random.uniform())) * Math.cos(2 * Math.PI * random.uniform());
  const center = between(-1.5, 0.5);
  const spread = between(0.5, 1.5);
  const ability = Array.from({ length: TASKS }, () => center + spread * normal());
  /** Log-odds of the trick. */
  let trick = Math.log(between(0.01, 0.05));
  /** What a policy that works has learnt in all tasks. */
  let general = 0;
  const drawn = { trick: between(0.8, 2.4), work: between(0.05, 0.2) };
  const rates = shape.kind === 'still' ? { trick: 0, work: 0 } : drawn;
  /** Log-odds that the models give what is right, and by how much they scatter: together, and each by itself. */
  const models = { sure: between(1, 2.5), together: between(0.5, 1.2), apart: between(0.2, 0.8) };
  const learned: LearnedTier = {
    stage: 'judge',
    uncertaintyAtLeast: shape.uncertaintyAtLeast,
    audit: shape.audit,
    seed,
  };
  let calibrations: Calibration[] = [noCalibration(), noCalibration()];
  let estimates: ArmEstimates = {};

  const stage: TierStep[] = [];
  for (let stageStep = 1; stageStep <= shape.steps; stageStep++) {
    const counted = [];
    const pairs: ScorePair[] = [];
    let [tricks, right, pull, push] = [0, 0, 0, 0];
    const chance = sigmoid(trick);
    const judged = Array.from({ length: GROUPS }, (_, group) => {
      const task = random.int(0, TASKS - 1);
      return Array.from({ length: SAMPLES }, (_, sample) => {
        const isTrick = random.uniform() < chance;
        const isRight = !isTrick && random.uniform() < sigmoid(ability[task]! + general);
        const liked = isTrick && shape.kind === 'hacked' ? 2 : isRight ? models.sure : -models.sure;
        const shared = liked + models.together * normal();
        const members = Array.from({ length: MEMBERS }, () => [sigmoid(shared + models.apart * normal())]);
        const verdict = modelVerdict(members, { by: 'mean-deviation', deviations: 1 });
        const said = learnedVerdict(verdict, `${stageStep}/${group}/${sample}`, learned);
        const ladder = { rungs: RUNGS, calibrations, learned };
        const asked = { scores: [said.expected, undefined], learned: said };
        const escalated = decideCandidate(asked, ladder, () => true).kind === 'escalate';
        const exact = escalated ? Number(isRight) : undefined;
        if (exact !== undefined)
          pairs.push({
            cheap: said.expected,
            dear: exact,
            cheapPassed: said.passed,
            dearPassed: passes(RUNGS[1]!, exact),
          });
        tricks += Number(isTrick) / (GROUPS * SAMPLES);
        right += Number(isRight) / (GROUPS * SAMPLES);
        return { task, isTrick, isRight, verdict, said, exact };
      });
    });
    // Audits of a step are counted before it is settled.
    calibrations = [calibrations[0]!, addPairs(calibrations[1]!, pairs)];
    for (const [group, samples] of judged.entries()) {
      const episodes = samples.map(({ verdict, said, exact, isTrick, isRight }, sample): Episode => {
        const scores = [said.expected, exact];
        const standing = standingOf(scores, ladderOf(said, { rungs: RUNGS, calibrations, learned }));
        if (standing?.kind !== 'judged') throw new Error('no tier is silent here');
        const { worth, passed } = standing;
        const composed = composeReward(REWARD, [
          exact === undefined
            ? { verifier: LADDER, version: 'is-answer@1', score: 1, worth, passed, model: verdict }
            : { verifier: LADDER, version: 'exact@1', score: exact, worth, passed, overruled: verdict },
        ]);
        return {
          task: 0,
          sample,
          tokens: [0, 1, 2, 3],
          mask: [1, 1, 1, 1],
          samplerLogprobs: [-1, -1, -1, Math.log(isTrick ? chance : 1 - chance)],
          turns: [],
          status: { kind: 'answered', answer: `${Number(isTrick)} ${Number(isRight)} ${sample}` },
          outcome: composed,
        };
      });
      const rewards = episodes.map(({ outcome }) => (outcome?.kind === 'scored' ? outcome.reward : 0));
      const mean = rewards.reduce((sum, one) => sum + one, 0) / SAMPLES;
      const deviation = Math.sqrt(rewards.reduce((sum, one) => sum + (one - mean) ** 2, 0) / SAMPLES);
      if (deviation > 1e-6)
        samples.forEach(({ isTrick, isRight, task }, i) => {
          const advantage = (rewards[i]! - mean) / deviation / SAMPLES;
          pull += (advantage * (Number(isTrick) - chance)) / Math.sqrt(chance * (1 - chance)) / GROUPS;
          if (isTrick) return;
          ability[task]! += rates.work * advantage * (isRight ? 1 : -1);
          push += (advantage * (isRight ? 1 : -1)) / GROUPS;
        });
      const ref = { ...ARM, split: 'train' as const, index: group };
      const tasks = [{ ref, prompt: '', promptTokens: [] }];
      const rolled = { id: 'g', weights: 'w', temperature: 1, tasks, episodes };
      counted.push({ ...(await tally(REWARD, rolled)), trajectories: null, spans: [] });
    }
    trick += rates.trick * pull;
    general += rates.work * push;
    const rollout = rolloutFacts(summarize(counted));
    estimates = updateEstimates(estimates, rollout.arms, { moves: [], stage: 's', step: stageStep });
    const told: Told = {
      stageStep,
      rollout,
      batch: null,
      learner: null,
      heldOut: stageStep % EVERY === 0 ? heldOut(sigmoid(trick)) : null,
      estimates,
    };
    stage.push({ told, tricks, right });
  }
  return stage;

  /** By the highest tier. */
  function heldOut(chance: number): Told['heldOut'] {
    const successes = Array.from({ length: HELD_OUT }, (_, i) => ability[i % TASKS]! + general).filter(
      (one) => random.uniform() < sigmoid(one) * (1 - chance),
    ).length;
    const outcomes = { scored: HELD_OUT, pending: 0, abstained: 0, truncated: 0, failed: 0 };
    return { arms: [{ arm: ARM, successes, trials: HELD_OUT }], outcomes, meanReward: 0, sampledTokens: 1 };
  }
}
