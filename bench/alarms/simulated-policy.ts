import { tally } from '../../activities/verification/tally.ts';
import type { Episode, Turn } from '../../core/episode/episode.ts';
import type { DiagnosisSetting } from '../../core/diagnosis/diagnosis.ts';
import { composeReward } from '../../core/episode/reward.ts';
import { RandomStream } from '../../core/random.ts';
import { armName } from '../../core/names.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { summarize } from '../../core/training/evaluation.ts';
import { rolloutFacts } from '../../core/training/facts-of.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';
import { learnability, updateEstimates } from '../../core/training/task-draw.ts';
import type { ArmEstimates } from '../../core/training/task-draw.ts';
import { SimulatedQueue } from './simulated-queue.ts';

// A policy that learns, as a model: what it can do at each task, how long its episodes are, how often it calls a tool
// that there is not or gets an error, and how sure it is of its tokens. Episodes are drawn from it, and counted by the
// code that counts those of every run; levels are drawn by the code that draws them. It learns from the groups alone
// whose samples differ. Nothing here knows the limits of any alarm. What the learner measures is not modelled, but for
// the norm of its gradient and, where samples are stale, for the weights of tokens: `kl-blow-up` and `missing-mask` have
// nothing to read.

export type Told = Pick<StepFacts, 'stageStep' | 'rollout' | 'batch' | 'learner' | 'heldOut' | 'estimates'> &
  Partial<Pick<DiagnosisSetting, 'asynchronous'>>;

/** Stages in which nothing goes wrong. */
export const KINDS = [
  'usual',
  /** Length grows at once, and success follows a tenth of the stage later. */
  'late',
  /** A fifth of the calls is to unknown tools, half of the others fail, half of the episodes are cut off, and all of that fades. */
  'clumsy',
  /** Entropy falls to a tenth and further while success rises. */
  'sure',
  /** Few and small groups. */
  'few',
  /** Nine of ten tasks are far beyond the policy. */
  'hard',
  /** Nearly all tasks are solved when the stage begins. */
  'mastered',
  /** Three levels, each harder and longer than the one before. */
  'levels',
  /** Groups are sampled without waiting for the learner, which is the quicker of the two, and take about as long each. */
  'overlapped',
  /** Likewise, but some take several times as long as others, and steps wait for them. */
  'uneven',
] as const;
export type Kind = (typeof KINDS)[number];

/** What happens to the policy within ten steps from `ONSET` on. */
export const SICKNESSES = [
  'length',
  'ghosts',
  'errors',
  'cut-off',
  'loops',
  'stutter',
  'blind',
  'collapse',
  'trap',
  'hacking',
  /** The learner becomes the slower one, and groups wait for it. */
  'queue',
  /** The policy moves so far a step that few tokens carry an update of stale samples. */
  'drift',
] as const;
export type Sickness = (typeof SICKNESSES)[number];
export const STRENGTHS = ['strong', 'weak'] as const;
export type Strength = (typeof STRENGTHS)[number];

export const ONSET = 40;
const TASKS = 64;
const HELD_OUT = 100;
const EVERY = 10;
/** What is paid besides is paid with success alone, or, where it can be had without, is worth more. */
const rewardOf = (hacked: boolean): RewardSpec => ({
  components: [
    { verifier: 'right', role: 'outcome', weight: 1, gatedBy: null },
    { verifier: 'manners', role: 'bonus', weight: hacked ? 1.5 : 0.2, gatedBy: hacked ? null : 'right' },
  ],
  truncated: 'train',
});

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** Draws of a stage. */
class Draws {
  readonly random: RandomStream;

  constructor(...path: (string | number)[]) {
    this.random = new RandomStream('simulated policy', ...path);
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.random.uniform();
  }

  chance(p: number): boolean {
    return this.random.uniform() < p;
  }

  normal(): number {
    return (
      Math.sqrt(-2 * Math.log(1 - this.random.uniform())) * Math.cos(2 * Math.PI * this.random.uniform())
    );
  }
}

/** What a policy and its stage are like, drawn once. */
function drawnPolicy(draws: Draws, kind: Kind, steps: number) {
  const is = (one: Kind): boolean => kind === one;
  const [low, high] = is('mastered') ? [2.5, 4] : [-1.5, 0.5];
  const [center, spread] = [draws.between(low, high), draws.between(0.5, 2)];
  const ability = Array.from({ length: is('levels') ? 3 : 1 }, (_, level) =>
    Array.from(
      { length: TASKS },
      () => center - 1.2 * level + spread * draws.normal() - (is('hard') && draws.chance(0.9) ? 8 : 0),
    ),
  );
  const grows = is('late') ? draws.between(0.6, 1.5) : draws.between(-0.4, 1.2);
  return {
    ability,
    groups: draws.random.pick(is('few') ? [2, 4] : [4, 8, 16]),
    samples: draws.random.pick(is('few') ? [2, 4] : [4, 8]),
    /** What a group with contrast teaches of its own task, and of all. */
    own: draws.between(0.05, 0.4),
    shared: draws.between(0.01, 0.08),
    /** Success follows what has been learnt so many steps later, and length follows it at once. */
    lag: is('late') ? Math.round(steps / 10) : draws.random.pick([0, 0, steps / 20]),
    length: draws.between(6, 16),
    grows,
    // Of the mean length at its longest, so that a healthy policy has room.
    limit: (1 + Math.max(0, grows)) * draws.between(1.6, 5),
    ghosts: is('clumsy') ? 0.2 : draws.between(0, 0.1),
    errors: is('clumsy') ? 0.5 : draws.between(0, 0.3),
    lingers: is('clumsy') ? 0.5 : 0,
    /** Errors that belong to the work, and do not fade. */
    needed: draws.between(0, 0.15),
    slowness: draws.between(10, 60),
    unsure: draws.between(0.05, 1),
    surer: is('sure') ? draws.between(1, 3) : draws.between(0.1, 1),
    wanders: draws.between(0, 0.1),
    gradient: Math.exp(draws.between(-3, 1)),
  };
}

/** How a stage overlaps rollouts and learner, drawn once, and for itself: what else a stage draws is the same without. */
function drawnOverlap(seed: number, kind: 'overlapped' | 'uneven', groups: number) {
  const draws = new Draws(kind, 'queue', seed);
  const maxStaleness = draws.random.int(2, 4);
  // Half of what fills the bound by itself, or less.
  const inFlight = Math.max(1, Math.round(draws.between(0.2, 0.5) * maxStaleness * groups));
  const tail = kind === 'uneven' ? draws.between(0.6, 1.2) : draws.between(0.1, 0.4);
  const queue = new SimulatedQueue({ groupsPerStep: groups, maxStaleness, inFlight }, () =>
    Math.exp(tail * draws.normal() - tail ** 2 / 2),
  );
  return {
    draws,
    queue,
    asynchronous: { maxStaleness, inFlight: inFlight / groups },
    /** Time that the groups of a step take; a group takes 1. */
    rollout: groups / inFlight,
    /** Of the learner, as a part of that. */
    quick: draws.between(0.3, 0.8),
    /** By what a token's log-prob moves a step, nats (one standard deviation); some move three times as far. */
    moves: Math.exp(draws.between(Math.log(0.01), Math.log(0.15))),
  };
}

/** How ill a stage is of each sickness when it is wholly there. */
const DOSES: Record<Strength, Record<Sickness, number>> = {
  // prettier-ignore
  strong: { length: 2, ghosts: 0.3, errors: 0.8, 'cut-off': 0.5, loops: 0.7, stutter: 0.7, blind: 1, collapse: 0.98, trap: 0.8, hacking: 0.7, queue: 2, drift: 0.6 },
  // prettier-ignore
  weak: { length: 0.8, ghosts: 0.1, errors: 0.5, 'cut-off': 0.2, loops: 0.35, stutter: 0.35, blind: 0.95, collapse: 0.9, trap: 0.6, hacking: 0.35, queue: 1.2, drift: 0.3 },
};

interface Shape {
  kind: Kind;
  steps: number;
  ill?: { sickness: Sickness; strength: Strength };
}

export async function simulatedStage(seed: number, { kind, steps, ill }: Shape): Promise<Told[]> {
  const draws = new Draws(kind, seed);
  const { random } = draws;
  const policy = drawnPolicy(draws, kind, steps);
  const { ability, groups, samples } = policy;
  const levels = ability.map((_, level) => ({ environment: 'simulated', level: level + 1 }));
  let [general, drift]: [number, number] = [0, 0];
  let estimates: ArmEstimates = {};
  const overlap = kind === 'overlapped' || kind === 'uneven' ? drawnOverlap(seed, kind, groups) : null;
  const learnt: number[] = [];
  // What is worth more than the outcome is there to be found, and found when the sickness begins.
  const hacked = ill?.sickness === 'hacking';
  const reward = rewardOf(hacked);

  const stage: Told[] = [];
  for (let stageStep = 1; stageStep <= steps; stageStep++) {
    learnt.push(general);
    const feltBefore = (age: number): number => learnt[Math.max(0, stageStep - 1 - policy.lag - age)]!;
    const felt = feltBefore(0);
    const progress = 1 - Math.exp(-general);
    const clumsy = Math.exp(-stageStep / policy.slowness);
    const begun = Math.min(1, Math.max(0, (stageStep - ONSET) / 10));
    const dose = (one: Sickness): number =>
      ill?.sickness === one ? begun * DOSES[ill.strength][ill.sickness] : 0;
    /** A policy that chooses no more does the same in all samples of a task. */
    const narrow = Math.max(dose('collapse'), dose('trap'));
    // What the tasks of one step have in common with those of the next.
    drift = 0.6 * drift + 0.2 * draws.normal();
    const now = {
      ghostly: Math.max(policy.ghosts * clumsy, dose('ghosts')),
      erring: Math.max(policy.errors * clumsy, policy.needed, dose('errors')),
      mean: policy.length * (1 + policy.grows * progress) * (1 + dose('length')),
      lingering: policy.lingers * clumsy,
      most: policy.length * policy.limit,
      surprise:
        policy.unsure * Math.exp(-policy.surer * general + policy.wanders * draws.normal()) * (1 - narrow),
      falls: dose('hacking'),
      manners: hacked ? 0.2 + 0.8 * begun : 0.5 + 0.4 * progress,
      blind: dose('blind'),
      loops: dose('loops'),
      stutter: dose('stutter'),
    };

    const ages = overlap?.queue.next(overlap.rollout * Math.max(overlap.quick, dose('queue')));
    const tokensByAge = Array<number>(Math.max(0, ...(ages ?? [])) + 1).fill(0);
    const counted = [];
    let [contrast, differ] = [0, 0];
    // The limit comes down to the length that episodes have.
    // Where length is what is learnt, nothing else is.
    const teaches = ill?.sickness === 'length' ? 1 - begun : 1;
    const cut = dose('cut-off');
    const most = cut > 0 ? now.most + begun * ((1.2 - cut) * now.mean - now.most) : now.most;
    for (let number = 0; number < groups; number++) {
      const level = drawn(levels.map((arm) => learnability(estimates[armName(arm)])));
      const task = random.int(0, TASKS - 1);
      const p = sigmoid(ability[level]![task]! + feltBefore(ages?.[number] ?? 0) + drift) * (1 - now.falls);
      const chosen = Number(draws.chance(p));
      const narrowed = p + narrow * (chosen - p);
      const blind = draws.chance(now.blind);
      const episodes = Array.from({ length: samples }, (_, sample) => play(sample, narrowed, level, blind));
      const solved = episodes.filter(({ outcome }) => succeeds(outcome));
      const part = solved.length / samples;
      contrast += (4 * part * (1 - part)) / groups;
      differ += Number(part > 0 && part < 1) / groups;
      // Advantages are zero where all samples earn the same.
      ability[level]![task]! += teaches * policy.own * 4 * part * (1 - part);
      const ref = { environment: 'simulated', split: 'train' as const, level: level + 1, index: task };
      const tasks = [{ ref, prompt: '', promptTokens: [] }];
      const group = { id: 'g', weights: 'w', temperature: 1, tasks, episodes };
      counted.push({ ...(await tally(reward, group)), trajectories: null, spans: [] });
      for (const { tokens } of episodes) tokensByAge[ages?.[number] ?? 0]! += tokens.length;
    }
    general += teaches * policy.shared * contrast;
    const rollout = rolloutFacts(summarize(counted));
    estimates = updateEstimates(estimates, rollout.arms, { moves: [], stage: 's', step: stageStep });
    stage.push({
      stageStep,
      rollout: {
        ...rollout,
        ...(ages && { staleness: tokensByAge.length - 1, sampledByStaleness: tokensByAge }),
      },
      batch: null,
      learner: {
        ...learnerOf(differ * groups, dose('trap')),
        ...(overlap && { effectiveSamples: effective(overlap, tokensByAge, dose('drift')) }),
      },
      ...(overlap && { asynchronous: overlap.asynchronous }),
      heldOut: stageStep % EVERY === 0 ? heldOut(felt, now.falls) : null,
      estimates,
    });

    function play(sample: number, p: number, level: number, blind: boolean): Episode {
      const wanted = Math.max(
        4,
        Math.round(
          now.mean *
            (1 + 0.7 * level) *
            Math.exp(0.4 * (1 - Math.exp(-4 * now.surprise)) * draws.normal()) *
            (draws.chance(now.lingering) ? 5 : 1),
        ),
      );
      const length = Math.min(wanted, Math.round(most * (1 + 0.7 * level)));
      const right = draws.chance(p);
      const turns: Turn[] = [];
      const tokens: number[] = [];
      const samplerLogprobs: number[] = [];
      while (tokens.length < length) {
        const start = tokens.length;
        const end = Math.min(length, start + random.int(4, 12));
        const name = draws.chance(now.ghostly) ? 'ghost' : 'look';
        const at = draws.chance(now.loops) ? 0 : turns.length;
        const failed =
          name === 'ghost' ? 'unknown-tool' : draws.chance(now.erring) ? 'tool-error' : undefined;
        // What is not sure is said in one of ten ways.
        const way = draws.chance(1 - Math.exp(-2 * now.surprise)) ? random.int(0, 9) : 0;
        const stutters = draws.chance(now.stutter);
        const logprob = now.surprise * Math.log(1 - random.uniform());
        for (let i = start; i < end; i++) {
          tokens.push(stutters && i > start + 1 ? tokens[i - 2]! : tokens.length);
          samplerLogprobs.push(logprob);
        }
        turns.push({
          start,
          end,
          text: `${name} ${at} ${way}`,
          action: { kind: 'call', call: { name, arguments: { at } } },
          observation: { text: `seen ${at} ${failed ?? ''}`, ...(failed && { error: failed }) },
        });
      }
      const cut = wanted > length;
      const composed = composeReward(reward, [
        { verifier: 'right', version: '1', score: blind ? 0.5 : Number(right && !cut) },
        { verifier: 'manners', version: '1', score: blind ? 0.5 : Number(draws.chance(now.manners)) },
      ]);
      // The first token decides.
      samplerLogprobs[0] = Math.log(Math.max(1e-9, right ? p : 1 - p));
      return {
        task: 0,
        sample,
        tokens,
        mask: tokens.map(() => 1),
        samplerLogprobs,
        turns,
        status: cut ? { kind: 'truncated', limit: 'tokens' } : { kind: 'ended' },
        outcome:
          cut && composed.kind === 'scored' ? { ...composed, kind: 'truncated', limit: 'tokens' } : composed,
      };
    }
  }
  return stage;

  /** One of them, in proportion to its weight. */
  function drawn(weights: readonly number[]): number {
    let at = random.uniform() * weights.reduce((sum, weight) => sum + weight, 0);
    const found = weights.findIndex((weight) => (at -= weight) < 0);
    return found === -1 ? weights.length - 1 : found;
  }

  /** Kish's part of the tokens, where those of an age have moved by it. */
  function effective(
    { draws: own, moves }: ReturnType<typeof drawnOverlap>,
    tokens: readonly number[],
    drifts: number,
  ): { tokens: number; sequences: number } {
    let [all, sum, squares] = [0, 0, 0];
    tokens.forEach((count, age) => {
      for (let i = 0; i < count; i++) {
        const deviation = (moves + drifts) * age * (own.chance(0.02) ? 3 : 1);
        // Ratios are 1 in the mean.
        const weight = Math.exp(deviation * own.normal() - deviation ** 2 / 2);
        all += 1;
        sum += weight;
        squares += weight ** 2;
      }
    });
    const part = sum ** 2 / (all * squares);
    return { tokens: part, sequences: part };
  }

  /** Of the groups that teach; a gradient has heavy tails. */
  function learnerOf(teaching: number, trap: number): NonNullable<Told['learner']> {
    const spike = draws.chance(0.02) ? draws.between(3, 12) : 1;
    const size = Math.max(Math.sqrt((teaching + 0.1) / groups), 4 * trap);
    return {
      loss: 0,
      gradientNorm: policy.gradient * size * Math.exp(0.4 * draws.normal()) * spike,
      entropy: null,
      kl: null,
      clipFraction: null,
      logprobGapMax: null,
      logprobGapMean: null,
      updates: 1,
      tokens: 1,
    };
  }

  function heldOut(felt: number, falls: number): Told['heldOut'] {
    const arms = levels.map((arm, level) => {
      const trials = Math.floor(HELD_OUT / levels.length);
      const successes = Array.from({ length: trials }, (_, i) => ability[level]![i % TASKS]!).filter((one) =>
        draws.chance(sigmoid(one + felt) * (1 - falls)),
      ).length;
      return { arm, successes, trials };
    });
    const outcomes = { scored: HELD_OUT, pending: 0, abstained: 0, truncated: 0, failed: 0 };
    return { arms, outcomes, meanReward: 0, sampledTokens: 1 };
  }
}

const succeeds = (outcome: Episode['outcome']): boolean =>
  outcome?.kind === 'scored' && outcome.components[0]!.score === 1;
