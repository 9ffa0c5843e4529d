import calculator from '../../examples/calculator.json' with { type: 'json' };
import { tally } from '../../activities/verification/tally.ts';
import { HELD_OUT } from '../../core/names.ts';
import { composeReward } from '../../core/episode/reward.ts';
import type { VerdictOfVerifier } from '../../core/episode/reward.ts';
import type { Episode, GroupTask, RolloutGroup, Turn } from '../../core/episode/episode.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import { RandomStream } from '../../core/random.ts';
import type { Split } from '../../core/refs.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { summarize } from '../../core/training/evaluation.ts';
import { rolloutFacts } from '../../core/training/facts-of.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';
import { builtInEnvironments } from '../../environments/families/index.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { sha256Hex } from '../../store/digest.ts';
import { parseSpec } from '../../spec/parse-spec.ts';

// A run that nobody trained: what one of such a size leaves in a store, as a function of its place in it. The tasks and
// the ways to solve them are the calculator's own; how often they are solved grows as in a training.

export interface MadeSize {
  steps: number;
  /** Of a step. */
  groups: number;
  /** Of a group. */
  samples: number;
}

export const MADE_STAGE = 'levels-1-3';
/** Every so many steps 64 held-out tasks are tried. */
export const MEASURED_EVERY = 20;
const MEASURED_TASKS = 64;
const FIRST_AT = Date.UTC(2026, 10, 1);
const SECONDS = 40;
const TEMPERATURE = 1;

const environment = calculatorEnvironment();

export function madeSpec(run: string): CurriculumSpec {
  const spec = parseSpec(calculator, run, new Map(builtInEnvironments.map((one) => [one.name, one])));
  if (spec.model.kind === 'from') throw new Error('the calculator begins from scratch');
  return { ...spec, model: spec.model };
}

const { reward } = madeSpec('made');

const weightsAt = (step: number): string => sha256Hex(new TextEncoder().encode(`weights ${step}`));

/** How likely a task of this level is solved. */
const skill = (step: number, level: number, { steps }: MadeSize): number =>
  (0.15 + 0.8 * (1 - Math.exp((-4 * step) / steps))) ** level;

/** A group of a step. */
export function madeGroup(size: MadeSize, step: number, group: number): RolloutGroup {
  const random = new RandomStream('made', step, group);
  const task = madeTask('train', random.int(1, 3), random.int(0, 99_999));
  return {
    id: `group-${String(group).padStart(4, '0')}`,
    weights: weightsAt(step - 1),
    temperature: TEMPERATURE,
    tasks: [task],
    episodes: Array.from({ length: size.samples }, (_, sample) =>
      madeEpisode(size, step, task, 0, sample, random),
    ),
  };
}

/** What is measured after a step: one sample of each task. */
export function madeEvaluation(size: MadeSize, step: number): RolloutGroup {
  const random = new RandomStream('made', 'held-out', step);
  const tasks = Array.from({ length: MEASURED_TASKS }, (_, i) => madeTask('heldout', 1 + (i % 3), i));
  return {
    id: 'group-0000',
    weights: weightsAt(step),
    temperature: 0,
    tasks,
    episodes: tasks.map((task, i) => madeEpisode(size, step, task, i, 0, random)),
  };
}

export const MADE_EVALUATION = `${MADE_STAGE}${HELD_OUT}`;

function madeTask(split: Split, level: number, index: number): GroupTask {
  const ref = { environment: environment.name, split, level, index };
  const { prompt } = environment.task(ref);
  return { ref, prompt, promptTokens: tokensOf(prompt) };
}

/** Some four letters a token. */
function tokensOf(text: string): number[] {
  const tokens: number[] = [];
  for (let at = 0; at < text.length; at += 4) {
    let id = 7;
    for (let i = at; i < Math.min(at + 4, text.length); i++) id = (id * 31 + text.charCodeAt(i)) % 4093;
    tokens.push(id);
  }
  return tokens;
}

function madeEpisode(
  size: MadeSize,
  step: number,
  { ref, prompt }: GroupTask,
  task: number,
  sample: number,
  random: RandomStream,
): Episode {
  const { answer, turns: shown } = solution(ref, prompt);
  const solves = random.uniform() < skill(step, ref.level, size);
  const mistake = random.uniform();
  const episode: Episode = {
    sample,
    task,
    tokens: [],
    mask: [],
    samplerLogprobs: [],
    turns: [],
    status: { kind: 'running' },
  };
  const say = (text: string, action: Turn['action'], observation?: Turn['observation']): void => {
    const start = episode.tokens.length;
    const sampled = tokensOf(text);
    const read = observation ? tokensOf(observation.text) : [];
    episode.tokens.push(...sampled, ...read);
    episode.mask.push(...sampled.map(() => 1 as const), ...read.map(() => 0 as const));
    episode.samplerLogprobs.push(
      ...sampled.map(() => Math.fround(Math.log(1 - 0.6 * random.uniform() ** 3))),
      ...read.map(() => 0),
    );
    episode.turns.push({
      start,
      end: start + sampled.length,
      text,
      action,
      ...(observation && { observation }),
    });
  };
  const called = (name: string, expression: string): string =>
    `<tool_call>{"name":"${name}","arguments":{"expression":"${expression}"}}</tool_call>`;
  if (!solves && mistake < 0.1) {
    const text = '<tool_call>{"name":"calculator"</tool_call>';
    const reason = 'not JSON';
    say(text, { kind: 'malformed', reason }, { text: `error: ${reason}`, error: 'malformed-call' });
  } else if (!solves && mistake < 0.15) {
    const call = { name: 'search', arguments: { expression: prompt.slice(0, 12) } };
    const unknown = 'error: there is no tool "search"; there is calculator';
    say(
      called('search', prompt.slice(0, 12)),
      { kind: 'call', call },
      { text: unknown, error: 'unknown-tool' },
    );
  }
  for (const { expression, observation } of shown) {
    const seconds = Math.round(1e4 * random.uniform()) / 1e6;
    const call = { name: 'calculator', arguments: { expression } };
    say(called('calculator', expression), { kind: 'call', call }, { text: observation, seconds });
  }
  if (!solves && mistake > 0.97) {
    const reason = 'the session of calculator was lost: its process ended with code 137';
    return {
      ...episode,
      status: { kind: 'failed', boundary: 'environment', reason },
      outcome: failed(reason),
    };
  }
  if (!solves && mistake > 0.9) {
    return { ...episode, status: { kind: 'truncated', limit: 'turns' }, outcome: cutOff() };
  }
  const message = solves ? answer : String(Number(answer) + random.int(1, 9));
  say(`<answer>${message}</answer>`, { kind: 'answer', answer: message });
  return {
    ...episode,
    status: { kind: 'answered', answer: message },
    outcome: composeReward(reward, verdicts(solves, episode)),
  };
}

const failed = (reason: string): Outcome => ({ kind: 'failed', boundary: 'environment', reason });

const cutOff = (): Outcome => ({ kind: 'truncated', limit: 'turns', reward: 0, components: [] });

const verdicts = (solves: boolean, { turns }: Episode): VerdictOfVerifier[] => [
  { verifier: 'exact-match', version: '1', score: Number(solves) },
  {
    verifier: 'format',
    version: '1',
    score: turns.some(({ action }) => action.kind === 'malformed') ? 0 : 1,
  },
  { verifier: 'tool-shaping', version: '1', score: Math.max(0, 1 - 0.05 * turns.length) },
];

/** What the environment's expert calls, and says at the end. */
function solution(ref: GroupTask['ref'], prompt: string) {
  const numbers = prompt.match(/\d+/g) ?? ['1', '1'];
  const [first = '1', second = '1'] = numbers;
  const results = Array.from({ length: ref.level }, (_, i) => Number(first) + (i + 1) * Number(second));
  return {
    answer: String(results.at(-1)!),
    turns: results.map((result, i) => ({
      expression: `${i === 0 ? first : results[i - 1]}+${second}`,
      observation: String(result),
    })),
  };
}

/** What is left of a step with these groups, and with what was measured after it. */
export async function madeStep(
  size: MadeSize,
  step: number,
  groups: readonly RolloutGroup[],
  measured: RolloutGroup | null,
): Promise<StepFacts> {
  const random = new RandomStream('made', 'step', step);
  const about = (value: number): number => value * (0.9 + 0.2 * random.uniform());
  const rollout = summarize(await Promise.all(groups.map(resultOf)));
  const heldOut = measured && summarize([await resultOf(measured)]);
  const seconds = SECONDS * (0.9 + 0.2 * random.uniform());
  const weights = weightsAt(step);
  const key = `runs/made/checkpoints/${String(step).padStart(6, '0')}-${weights.slice(0, 12)}/manifest.json`;
  const alarmed = step % 97 === 0;
  const last = step === size.steps;
  return {
    stage: MADE_STAGE,
    stageStep: step,
    maxSteps: size.steps,
    step,
    environment: environment.name,
    checkpoint: { manifest: { key, sha256: weightsAt(-step), bytes: 2048 }, weights, step },
    backend: 'tensorflow-cpu',
    rollout: rolloutFacts(rollout),
    batch: {
      sequences: groups.length * size.samples,
      tokens: 2 * rollout.sampledTokens,
      maskedTokens: rollout.sampledTokens,
      degenerateGroups: rollout.behaviour.equalRewards,
    },
    learner: {
      loss: about(0.02),
      gradientNorm: about(0.4),
      entropy: about(0.9 - (0.5 * step) / size.steps),
      kl: about((0.08 * step) / size.steps),
      clipFraction: about(0.03),
      logprobGapMax: about(2e-5),
      logprobGapMean: about(2e-6),
      updates: 2,
      tokens: 2 * rollout.sampledTokens,
    },
    heldOut: heldOut && {
      arms: heldOut.arms,
      outcomes: heldOut.outcomes,
      meanReward: heldOut.rewardSum / Math.max(1, heldOut.rewardCount),
      sampledTokens: heldOut.sampledTokens,
      ...(heldOut.conduct && { conduct: heldOut.conduct }),
    },
    estimates: Object.fromEntries(
      rollout.arms.map(({ arm, successes, trials }) => [
        `${arm.environment}:${arm.level}`,
        { successes, trials },
      ]),
    ),
    adjusted: { learningRateFactor: 1, temperatureFactor: 1, keepGroups: 1 },
    alarms: alarmed
      ? [
          {
            name: 'no-contrast',
            stageStep: step,
            evidence: [{ what: 'groups of equal rewards, part', now: 0.83, before: 0.4, limit: 0.8 }],
            remedy: 'Draw harder tasks, or more samples of each.',
            actions: [],
          },
        ]
      : [],
    decision: last
      ? { kind: 'graduate', reason: 'held-out success is at least 0.88', action: null, question: null }
      : { kind: 'continue', reason: null, action: null, question: null },
    circumstances: {
      endedAt: FIRST_AT + step * SECONDS * 1000,
      seconds: {
        rollout: 0.45 * seconds,
        tool: 0.02 * seconds,
        verification: 0.03 * seconds,
        learner: 0.4 * seconds,
        data: 0.05 * seconds,
        orchestration: 0.05 * seconds,
      },
      learnerSeconds: 0.38 * seconds,
      incidents: [],
    },
  };
}

const resultOf = async (group: RolloutGroup): Promise<GroupResult> => ({
  trajectories: null,
  spans: [],
  ...(await tally(reward, group)),
});
