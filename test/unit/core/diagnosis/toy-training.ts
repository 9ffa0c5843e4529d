import { tally } from '../../../../activities/verification/tally.ts';
import { groupRelative } from '../../../support/group-relative.ts';
import type { Action, Episode, Observation, RolloutGroup, Turn } from '../../../../core/episode/episode.ts';
import { composeReward } from '../../../../core/episode/reward.ts';
import { RandomStream } from '../../../../core/random.ts';
import type { RewardComponentSpec, RewardSpec } from '../../../../core/schema/reward.ts';
import { summarize } from '../../../../core/training/evaluation.ts';
import type { Told } from './stages.ts';

// A training that is real and takes milliseconds: a policy of a few hundred numbers, group-relative advantages and
// gradient ascent, on tasks with a tool. Its episodes are counted by the code that counts those of every run.

/** What the policy can do in a turn; an answer ends the episode. */
const MOVES = ['look', 'note', 'ghost', 'answer-0', 'answer-1', 'answer-2', 'answer-3'] as const;
type Move = (typeof MOVES)[number];

/** Sampled tokens of a move. */
const TOKENS: Record<Move, number> = {
  look: 3,
  note: 12,
  ghost: 3,
  'answer-0': 2,
  'answer-1': 2,
  'answer-2': 2,
  'answer-3': 2,
};

const TASKS = 8;
const GROUPS = 16;
const SAMPLES = 8;
const MAX_TURNS = 6;

/** What was done in an episode, for verifiers. */
export interface Done {
  moves: readonly Move[];
  /** It looked the answer up, and gave it. */
  right: boolean;
  tokens: number;
}

export interface Toy {
  steps: number;
  learningRate: number;
  /** Beside the outcome, whose weight is 1: name, weight and score of each. */
  bonuses?: { verifier: string; weight: number; score: (done: Done) => number }[];
  /** In place of whether it is right. */
  outcome?: (done: Done) => number;
  /** Logits that the policy begins with; 0 otherwise. */
  begins?: Partial<Record<Move, number>>;
  /** Steps before the stage, in which only what is right is paid for, with a learning rate of 4. */
  warmStart?: number;
  seed?: number;
}

/** Logits of the moves, by whether it has looked. */
type Logits = [number[], number[]];
interface Policy {
  shared: Logits;
  /** Beside the shared ones, of each task. */
  own: Logits[];
}

/** Trains, and tells each step. */
export async function train({
  steps,
  learningRate,
  bonuses = [],
  outcome,
  begins = {},
  warmStart = 0,
  seed = 1,
}: Toy): Promise<Told[]> {
  const random = new RandomStream('toy', seed);
  const zeros = (): Logits => [MOVES.map(() => 0), MOVES.map(() => 0)];
  const policy: Policy = {
    shared: [MOVES.map((move) => begins[move] ?? 0), MOVES.map((move) => begins[move] ?? 0)],
    own: Array.from({ length: TASKS }, zeros),
  };
  const specs: RewardComponentSpec[] = [
    { verifier: 'right', role: 'outcome', weight: 1, gatedBy: null },
    ...bonuses.map(({ verifier, weight }) => ({ verifier, role: 'bonus' as const, weight, gatedBy: null })),
  ];
  const reward: RewardSpec = { components: specs, truncated: 'train' };
  const told: Told[] = [];
  for (let stageStep = 1 - warmStart; stageStep <= steps; stageStep++) {
    const inStage = stageStep > 0;
    const gradient: Policy = { shared: zeros(), own: Array.from({ length: TASKS }, zeros) };
    const groups = [];
    for (let number = 0; number < GROUPS; number++) {
      const task = random.int(0, TASKS - 1);
      const episodes = Array.from({ length: SAMPLES }, (_, sample) => roll(policy, task, sample, random));
      for (const { episode, done } of episodes) {
        episode.outcome = composeReward(reward, [
          { verifier: 'right', version: '1', score: inStage && outcome ? outcome(done) : Number(done.right) },
          ...bonuses.map(({ verifier, score }) => ({
            verifier,
            version: '1',
            score: inStage ? score(done) : 0,
          })),
        ]);
        // What a limit cut off has its reward, and no success.
        if (episode.status.kind === 'truncated' && episode.outcome.kind === 'scored')
          episode.outcome = { ...episode.outcome, kind: 'truncated', limit: 'turns' };
      }
      const advantages = groupRelative(
        episodes.map(({ episode }) => (episode.outcome as { reward: number }).reward),
        'group',
      );
      episodes.forEach(({ choices }, i) => {
        for (const { looked, move } of choices) {
          const chances = softmax(logitsOf(policy, task, looked));
          chances.forEach((chance, other) => {
            const slope = (advantages[i]! * (Number(other === move) - chance)) / (GROUPS * SAMPLES);
            gradient.shared[looked][other]! += slope;
            gradient.own[task]![looked][other]! += slope;
          });
        }
      });
      groups.push(
        groupOf(
          task,
          episodes.map(({ episode }) => episode),
        ),
      );
    }
    const counted = await Promise.all(
      groups.map(async (group) => ({ ...(await tally(reward, group)), trajectories: null, spans: [] })),
    );
    const summary = summarize(counted);
    const { behaviour, arms, outcomes, rewardSum, rewardCount, sampledTokens, sampledLogprob, turns } =
      summary;
    const all = [gradient.shared, ...gradient.own].flat(2);
    if (inStage)
      told.push({
        stageStep,
        rollout: {
          ...behaviour,
          arms,
          outcomes,
          rewardSum,
          rewardCount,
          sampledTokens,
          sampledLogprob,
          turns,
          failedGroups: [],
        },
        batch: null,
        learner: {
          loss: 0,
          gradientNorm: Math.hypot(...all),
          entropy: -sampledLogprob / sampledTokens,
          kl: 0,
          clipFraction: 0,
          logprobGapMax: 0,
          logprobGapMean: 0,
          updates: 1,
          tokens: sampledTokens,
        },
        heldOut: null,
      });
    const climb = (logits: Logits, slopes: Logits) =>
      logits.forEach((row, looked) =>
        row.forEach((_, move) => (row[move]! += (inStage ? learningRate : 4) * slopes[looked]![move]!)),
      );
    climb(policy.shared, gradient.shared);
    policy.own.forEach((logits, task) => climb(logits, gradient.own[task]!));
  }
  return told;
}

const logitsOf = ({ shared, own }: Policy, task: number, looked: 0 | 1): number[] =>
  shared[looked].map((logit, move) => logit + own[task]![looked][move]!);

function softmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

function draw(chances: readonly number[], random: RandomStream): number {
  let left = random.uniform();
  const at = chances.findIndex((chance) => (left -= chance) < 0);
  return at < 0 ? chances.length - 1 : at;
}

/** One episode: moves until an answer, or until turns run out. */
function roll(policy: Policy, task: number, sample: number, random: RandomStream) {
  const choices: { looked: 0 | 1; move: number }[] = [];
  const turns: Turn[] = [];
  const episode: Episode = {
    task: 0,
    sample,
    tokens: [],
    mask: [],
    samplerLogprobs: [],
    turns,
    status: { kind: 'truncated', limit: 'turns' },
  };
  let looked: 0 | 1 = 0;
  let right = false;
  while (turns.length < MAX_TURNS && episode.status.kind === 'truncated') {
    const chances = softmax(logitsOf(policy, task, looked));
    const move = draw(chances, random);
    const name = MOVES[move]!;
    choices.push({ looked, move });
    const start = episode.tokens.length;
    for (let i = 0; i < TOKENS[name]; i++) {
      // No run of tokens stands twice.
      episode.tokens.push(1000 * (move + 1) + start + i);
      episode.mask.push(1);
      // The first token says which move it is; the others follow from it.
      episode.samplerLogprobs.push(i === 0 ? Math.log(chances[move]!) : 0);
    }
    const { action, observation } = meaning(name, turns.length);
    turns.push({
      start,
      end: episode.tokens.length,
      text: `${name} ${name === 'note' ? turns.length : ''}`,
      action,
      ...(observation && { observation }),
    });
    if (observation) {
      episode.tokens.push(1);
      episode.mask.push(0);
      episode.samplerLogprobs.push(0);
    }
    if (action.kind === 'answer') {
      right = looked === 1 && action.answer === String(task % 4);
      episode.status = { kind: 'answered', answer: action.answer };
    }
    if (name === 'look') looked = 1;
  }
  const tokens = episode.mask.reduce<number>((sum, bit) => sum + bit, 0);
  const done: Done = { moves: choices.map(({ move }) => MOVES[move]!), right, tokens };
  return { episode, choices, done };
}

function meaning(move: Move, turn: number): { action: Action; observation?: Observation } {
  switch (move) {
    case 'look':
      return {
        action: { kind: 'call', call: { name: 'look', arguments: {} } },
        observation: { text: 'seen' },
      };
    case 'note':
      return {
        action: { kind: 'call', call: { name: 'note', arguments: { turn } } },
        observation: { text: 'noted' },
      };
    case 'ghost':
      return {
        action: { kind: 'call', call: { name: 'ghost', arguments: { turn } } },
        observation: { text: 'error: there is no tool ghost', error: 'unknown-tool' },
      };
    default:
      return { action: { kind: 'answer', answer: move.slice('answer-'.length) } };
  }
}

const groupOf = (task: number, episodes: Episode[]): RolloutGroup => ({
  id: 'toy',
  weights: 'toy',
  temperature: 1,
  tasks: [
    { ref: { environment: 'toy', split: 'train', level: 1, index: task }, prompt: '', promptTokens: [] },
  ],
  episodes,
});
