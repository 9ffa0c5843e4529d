import { tally } from '../../activities/verification/tally.ts';
import type { Episode, Turn } from '../../core/episode/episode.ts';
import { composeReward } from '../../core/episode/reward.ts';
import { RandomStream } from '../../core/random.ts';
import type { RewardSpec } from '../../core/spec.ts';
import { summarize } from '../../core/training/evaluation.ts';
import { rolloutFacts } from '../../core/training/facts-of.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';

// A policy that learns, as a model: what it can do at each task, how long its episodes are, how often it calls a tool
// that there is not or gets an error, and how sure it is of its tokens. Episodes are drawn from it and counted by the
// code that counts those of every run. Nothing here knows the limits of any alarm.

export type Told = Pick<StepFacts, 'stageStep' | 'rollout' | 'batch' | 'learner' | 'heldOut'>;

/** What happens to the policy from `ONSET` on. */
export const SICKNESSES = ['none', 'length', 'ghosts', 'errors', 'cut-off', 'loops', 'blind'] as const;
export type Sickness = (typeof SICKNESSES)[number];

export const ONSET = 40;
const TASKS = 64;
const REWARD: RewardSpec = {
  components: [{ verifier: 'right', role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
};

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

export async function stageOf(seed: number, steps: number, sickness: Sickness): Promise<Told[]> {
  const random = new RandomStream('simulated policy', seed);
  const between = (low: number, high: number): number => low + (high - low) * random.uniform();
  const chance = (p: number): boolean => random.uniform() < p;
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(1 - random.uniform())) * Math.cos(2 * Math.PI * random.uniform());

  const [groups, samples] = [random.pick([4, 8, 16]), random.pick([4, 8])];
  const [center, spread] = [between(-1.5, 0.5), between(0.5, 2)];
  const ability = Array.from({ length: TASKS }, () => center + spread * normal());
  const [own, shared] = [between(0.05, 0.4), between(0.01, 0.08)];
  /** Success follows what has been learnt so many steps later, and length follows it at once. */
  const lag = random.pick([0, 0, steps / 10]);
  const [length, grows, limit] = [between(6, 24), between(-0.4, 1.2), between(1.5, 6)];
  const [ghosts, errors, slowness] = [between(0, 0.3), between(0, 0.6), between(10, 60)];
  const [unsure, surer] = [between(0.05, 1), between(0.3, 1)];
  let general = 0;
  const learnt: number[] = [];

  const stage: Told[] = [];
  for (let stageStep = 1; stageStep <= steps; stageStep++) {
    learnt.push(general);
    const felt = learnt[Math.max(0, stageStep - 1 - lag)]!;
    const progress = 1 - Math.exp(-general);
    const clumsy = Math.exp(-stageStep / slowness);
    const ill = Math.min(1, Math.max(0, (stageStep - ONSET) / 10));
    const is = (one: Sickness): number => (sickness === one ? ill : 0);
    const ghostly = Math.max(ghosts * clumsy, 0.3 * is('ghosts'));
    const erring = Math.max(errors * clumsy, 0.8 * is('errors'));
    const mean = length * (1 + grows * progress) * (1 + 2 * is('length'));
    const most = length * limit * (1 - 0.8 * is('cut-off'));
    const surprise = unsure * Math.exp(-surer * general);

    const counted = [];
    let contrast = 0;
    for (let number = 0; number < groups; number++) {
      const task = random.int(0, TASKS - 1);
      const p = sigmoid(ability[task]! + felt);
      const episodes = Array.from({ length: samples }, (_, sample) => play(sample, p));
      const solved = episodes.filter(({ outcome }) => outcome!.kind === 'scored' && outcome!.reward === 1);
      const part = solved.length / samples;
      contrast += (4 * part * (1 - part)) / groups;
      // Advantages are zero where all samples earn the same.
      ability[task]! += own * 4 * part * (1 - part);
      const ref = { environment: 'simulated', split: 'train' as const, level: 1, index: task };
      const group = {
        id: 'g',
        weights: 'w',
        temperature: 1,
        tasks: [{ ref, prompt: '', promptTokens: [] }],
        episodes,
      };
      counted.push({ ...(await tally(REWARD, group)), trajectories: null, spans: [] });
    }
    general += shared * contrast;
    stage.push({
      stageStep,
      rollout: rolloutFacts(summarize(counted)),
      batch: null,
      learner: null,
      heldOut: null,
    });

    function play(sample: number, p: number): Episode {
      const wanted = Math.max(4, Math.round(mean * Math.exp(0.4 * normal())));
      const tokens = Math.min(wanted, Math.round(most));
      const right = chance(p);
      const turns: Turn[] = [];
      for (let start = 0; start < tokens; start += 4) {
        const end = Math.min(tokens, start + 4);
        const name = chance(ghostly) ? 'ghost' : 'look';
        const turn = turns.length;
        const loops = chance(0.7 * is('loops'));
        const error =
          name === 'ghost' ? ('unknown-tool' as const) : chance(erring) ? ('tool-error' as const) : undefined;
        const at = loops ? 0 : turn;
        turns.push({
          start,
          end,
          text: `${name} ${at} ${random.int(0, 9)}`,
          action: { kind: 'call', call: { name, arguments: { at } } },
          observation: { text: `seen ${at} ${error ?? ''}`, ...(error && { error }) },
        });
      }
      const cut = wanted > most;
      const score = sickness === 'blind' && stageStep > ONSET ? 0.5 : Number(right && !cut);
      const composed = composeReward(REWARD, [{ verifier: 'right', version: '1', score }]);
      return {
        task: 0,
        sample,
        tokens: Array.from({ length: tokens }, (_, i) => random.int(0, 9999) + i),
        mask: Array.from({ length: tokens }, () => 1),
        // The first token decides, and the others are more or less sure.
        logprobs: Array.from({ length: tokens }, (_, i) =>
          i === 0 ? Math.log(right ? p : 1 - p) : surprise * Math.log(1 - random.uniform()),
        ),
        turns,
        status: cut ? { kind: 'truncated', limit: 'tokens' } : { kind: 'ended' },
        outcome:
          cut && composed.kind === 'scored' ? { ...composed, kind: 'truncated', limit: 'tokens' } : composed,
      };
    }
  }
  return stage;
}
