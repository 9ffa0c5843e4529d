import { diagnose, undiagnosed } from '../../../../core/diagnosis/diagnose.ts';
import type { Alarm } from '../../../../core/diagnosis/alarm.ts';
import type { DiagnosisSetting } from '../../../../core/diagnosis/diagnosis.ts';
import type { Signals } from '../../../../core/diagnosis/signals.ts';
import { noOutcomes } from '../../../../core/episode/outcome.ts';
import { RandomStream } from '../../../../core/random.ts';
import { noBehaviour } from '../../../../core/training/behaviour.ts';
import type { ComponentCounts, Staleness, StepFacts } from '../../../../core/training/step-facts.ts';
import { arm } from '../training/scripted-training.ts';

// Stages that are nothing but their facts: a healthy one, by what healthy runs of the log look like, or one that
// something goes wrong in.

/** What the diagnoses read of a step. */
export type Told = Pick<StepFacts, 'stageStep' | 'rollout' | 'batch' | 'learner' | 'heldOut'>;

export const setting: DiagnosisSetting = {
  outcomeWeight: 1,
  lateEpisodes: false,
  klTo: 'reference',
  clipsSequences: false,
  contrast: 'task',
  temperatureMoves: false,
  asynchronous: { maxStaleness: 4, inFlight: 2 },
  look: { left: 1, looks: 20 },
};

const EPISODES = 512;
const GROUPS = 64;
const TASKS = 384;
const CALLS = 1024;

/** Facts whose signals are these; a signal that is null cannot be told from them. */
export function factsOf(
  stageStep: number,
  signals: Partial<Signals>,
  heldOut: { successes: number; trials: number } | null = null,
): Told {
  const known = (value: number | null | undefined): number => value ?? 0;
  const or = (value: number | null | undefined, count: number): number =>
    typeof value === 'number' ? count : 0;
  const tokens = EPISODES * (signals.length ?? 30);
  return {
    stageStep,
    rollout: {
      ...noBehaviour(),
      outcomes: { ...noOutcomes(), scored: EPISODES },
      episodes: EPISODES,
      arms:
        typeof signals.success === 'number'
          ? [{ arm: arm(1), successes: signals.success * TASKS, trials: TASKS }]
          : [],
      rewardSum: known(signals.reward) * EPISODES,
      rewardCount: or(signals.reward, EPISODES),
      sampledTokens: tokens,
      ...(typeof signals.besides === 'number' && { otherTokens: signals.besides * tokens }),
      sampledLogprob: typeof signals.entropy === 'number' ? -signals.entropy * tokens : NaN,
      turns: 2 * EPISODES,
      ...(typeof signals.staleness === 'number' && agesOf(signals.staleness, tokens)),
      failedGroups: [],
      truncated: known(signals.truncated) * EPISODES,
      rewardGroups: or(signals.variance ?? signals.equal, GROUPS),
      equalRewards: known(signals.equal) * GROUPS,
      rewardVariance: known(signals.variance) * GROUPS,
      calls: {
        lookup: or(signals.unknown ?? signals.repeated, CALLS * (1 - known(signals.unknown))),
      },
      unknownTools: known(signals.unknown) * CALLS,
      components: typeof signals.excess === 'number' ? { right: judgedWith(signals.excess) } : {},
      toolErrors: known(signals.errors) * 2 * EPISODES,
      repeatedCalls: known(signals.repeated) * CALLS,
      duplicateEpisodes: known(signals.duplicates) * EPISODES,
      fourGrams: or(signals.echoed, tokens),
      repeatedFourGrams: known(signals.echoed) * tokens,
    },
    batch:
      typeof signals.learnt === 'number'
        ? {
            sequences: EPISODES,
            tokens: 2 * tokens,
            maskedTokens: signals.learnt * tokens * (1 + known(signals.besides)),
            degenerateGroups: 0,
          }
        : null,
    learner:
      typeof signals.gradientNorm === 'number'
        ? {
            loss: 0,
            gradientNorm: signals.gradientNorm,
            entropy: known(signals.entropy),
            kl: signals.kl ?? null,
            clipFraction: signals.clipped ?? null,
            logprobGapMax: signals.gap ?? null,
            logprobGapMean: signals.gap ?? null,
            ...(typeof signals.widestGap === 'number' && {
              logprobGapByPosition: [
                { from: 0, tokens, mean: 0 },
                { from: 64, tokens, mean: signals.widestGap },
              ],
            }),
            ...(typeof signals.effective === 'number' && {
              effectiveSamples: { tokens: signals.effective, sequences: signals.effective },
            }),
            updates: 1,
            tokens,
          }
        : null,
    heldOut: heldOut && {
      arms: [{ arm: arm(1), ...heldOut }],
      outcomes: { ...noOutcomes(), scored: heldOut.trials },
      meanReward: 0,
      sampledTokens: 1,
    },
  };
}

/** Tokens of the two ages between which the mean lies. */
function agesOf(mean: number, tokens: number): Staleness {
  const [low, older] = [Math.floor(mean), mean % 1];
  const sampledByStaleness = [...Array<number>(low).fill(0), (1 - older) * tokens, older * tokens];
  return { staleness: low + 1, sampledByStaleness };
}

const clip = (x: number, low = 0, high = 1): number => Math.min(high, Math.max(low, x));

/** Draws of a stage: normal and uniform ones, from one stream. */
class Draws {
  private readonly stream: RandomStream;

  constructor(...path: (string | number)[]) {
    this.stream = new RandomStream(...path);
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.stream.uniform();
  }

  /** On the scale of logarithms. */
  scaled(low: number, high: number): number {
    return Math.exp(this.between(Math.log(low), Math.log(high)));
  }

  normal(): number {
    return (
      Math.sqrt(-2 * Math.log(1 - this.stream.uniform())) * Math.cos(2 * Math.PI * this.stream.uniform())
    );
  }

  /** A factor around 1, of which the logarithm has this deviation. */
  around(deviation: number): number {
    return Math.exp(deviation * this.normal());
  }

  chance(p: number): boolean {
    return this.stream.uniform() < p;
  }
}

export interface StageShape {
  steps: number;
  /** Part of the steps that has no rollout to tell of, that has no learner step, and that has no new task. */
  missing: number;
  /** Evaluations of 200 tasks every so many steps. */
  everySteps: number;
}

const SHAPE: StageShape = { steps: 200, missing: 0.05, everySteps: 10 };

/**
 * The steps of a healthy stage: success rises to a plateau, sooner or later and higher or lower; entropy and variance
 * fall with it, as they did in the recorded runs, and samples get more alike; gradients have heavy tails; all of it is noisy, and some of it
 * is missing. `change` is what goes wrong: it gets a step's signals, and gives others.
 */
export function stageOf(
  seed: number,
  change: (signals: Signals, step: number) => Partial<Signals> = () => ({}),
  shape: Partial<StageShape> = {},
): Told[] {
  const { steps, missing, everySteps } = { ...SHAPE, ...shape };
  const draws = new Draws('a stage', seed);
  const from = draws.between(0.15, 0.7);
  const to = draws.between(from, 0.98);
  const slowness = draws.between(15, 120);
  const constants = {
    bonus: draws.between(0, 0.2),
    variance: draws.between(0.25, 0.6),
    varianceFalls: draws.between(0, 0.4),
    entropy: draws.scaled(0.05, 1.5),
    entropyFalls: draws.between(0, 0.75),
    gradientNorm: draws.scaled(0.05, 3),
    gradientGrows: draws.between(-0.4, 0.3),
    kl: draws.chance(0.5) ? 0 : draws.scaled(0.001, 0.1),
    gap: draws.scaled(1e-7, 1e-2),
    effective: 0.97,
    staleness: 2,
    length: draws.scaled(5, 1000),
    grows: draws.between(-0.3, 0.4),
    truncated: draws.between(0, 0.1),
    unknown: draws.between(0, 0.01),
    repeated: draws.between(0, 0.1),
    echoed: draws.between(0, 0.15),
    duplicates: draws.between(0, 0.6),
    alike: draws.between(0, 0.2),
  };
  let drift = 0;
  return Array.from({ length: steps }, (_, index) => {
    const step = index + 1;
    const progress = 1 - Math.exp(-step / slowness);
    // What the tasks of one step have in common with those of the next.
    drift = 0.6 * drift + 0.8 * draws.normal();
    const truth = from + (to - from) * progress;
    const success = clip(truth + (0.05 * drift * Math.sqrt(truth * (1 - truth))) / 0.5, 0.01, 0.99);
    const c = constants;
    const healthy: Signals = {
      reward: success + c.bonus * draws.between(0.8, 1),
      success,
      variance: c.variance * truth * (1 - truth) * (1 - c.varianceFalls * progress) * draws.around(0.25),
      equal: clip(0.3 + 0.5 * progress * success + 0.08 * draws.normal()),
      entropy: c.entropy * (1 - c.entropyFalls * progress) * draws.around(0.2),
      gradientNorm:
        c.gradientNorm *
        (1 + c.gradientGrows * progress) *
        draws.around(0.45) *
        (draws.chance(0.02) ? draws.between(3, 12) : 1),
      kl: c.kl * progress * draws.around(0.5),
      clipped: clip(0.003 * draws.around(1)),
      gap: c.gap * draws.around(0.5),
      widestGap: 2 * c.gap,
      effective: c.effective,
      staleness: c.staleness,
      learnt: draws.between(0.95, 1),
      besides: 0,
      length: c.length * (1 + c.grows * progress) * draws.around(0.06),
      truncated: clip(c.truncated * draws.around(0.4)),
      unknown: clip(c.unknown * draws.around(0.8)),
      errors: clip(0.1 * draws.around(0.3)),
      repeated: clip(c.repeated * draws.around(0.5)),
      duplicates: clip(c.duplicates + c.alike * progress + 0.03 * draws.normal()),
      excess: null,
      echoed: clip(c.echoed * draws.around(0.3)),
    };
    const signals: Signals = { ...healthy, ...change(healthy, step) };
    if (draws.chance(missing)) signals.success = null;
    const trials = 200;
    const measured = step % everySteps === 0;
    const solved = truth * trials + Math.sqrt(trials * truth * (1 - truth)) * draws.normal();
    return factsOf(
      step,
      signals,
      measured ? { successes: Math.round(clip(solved, 0, trials)), trials } : null,
    );
  });
}

/** A component whose scores a model exceeds by so much in the mean. */
const judgedWith = (excess: number): ComponentCounts => ({
  scored: EPISODES,
  score: 0,
  contribution: 0,
  model: {
    judged: EPISODES,
    score: excess * EPISODES,
    uncertainty: 0,
    compared: EPISODES,
    excess: excess * EPISODES,
    squaredError: 0,
  },
});

/** What is raised in a stage, in order. */
export function alarmsOf(steps: readonly Told[], over: Partial<DiagnosisSetting> = {}): Alarm[] {
  let diagnosed = undiagnosed();
  return steps.flatMap((facts) => {
    const result = diagnose(diagnosed, facts, { ...setting, ...over });
    diagnosed = result.diagnosed;
    return result.alarms;
  });
}
