import type { BenchOptions } from '../bench.ts';
import { benchRow, pairedDifference } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { caseOf, MANY_TURNS, MOLECULES, paidForDiversity, quickly, SETTING, unmasked } from './cases.ts';
import { chosen, compare, seedsOf } from './comparison.ts';
import type { Case, Setting, Trial } from './trial.ts';

/** `ours` is the side that is said to be better; both are names of cases. */
interface Claim {
  name: string;
  claim: string;
  ours: string;
  anchor: string;
  /** Default: success. */
  measure?: Measure;
}

const MEASURES = {
  success: ({ points }: Trial) => points.at(-1)!.success,
  'distinct answers': ({ distinct }: Trial) => distinct,
};
type Measure = keyof typeof MEASURES;

interface Group {
  name: string;
  title: string;
  setting: Setting;
  cases: readonly Case[];
  claims: readonly Claim[];
}

/** More updates a step than the others have, for a clip does nothing in the first of them. */
const REUSED = { numIterations: 4 };

const OUTCOME_ONLY = { components: [{ verifier: 'exact-match', role: 'outcome', weight: 1 }] };

/** The bonus counts also where the answer is wrong. */
const SHAPED = {
  components: [
    { verifier: 'exact-match', role: 'outcome', weight: 1 },
    { verifier: 'format', role: 'bonus', weight: 0.2 },
    { verifier: 'tool-shaping', role: 'penalty', weight: 0.2 },
  ],
};

const ONE_CALL: Group = {
  name: 'claims-one-call',
  title: 'Claims about group-relative training: one call an episode',
  setting: SETTING,
  cases: [
    caseOf('grpo', {}),
    caseOf('unmasked', {}, { alter: unmasked }),
    caseOf('G=4', { groupsPerStep: 32, numGenerations: 4 }),
    caseOf('G=16', { groupsPerStep: 8, numGenerations: 16 }),
    caseOf('filtered', { algorithm: { kind: 'dapo', maxRefills: 0 } }),
    caseOf('refilled', { algorithm: { kind: 'dapo', maxRefills: 4 } }),
    caseOf('clip-higher', { algorithm: { ...REUSED, clipRatioHigh: 0.28 } }),
    caseOf('clip-symmetric', { algorithm: { ...REUSED, clipRatioHigh: 0.2 } }),
    caseOf('kl', { algorithm: { beta: 0.04 } }),
    caseOf('shaped', {}, { reward: SHAPED }),
    caseOf('outcome-only', {}, { reward: OUTCOME_ONLY }),
  ],
  claims: [
    { name: 'mask', claim: 'observations masked vs learnt from', ours: 'grpo', anchor: 'unmasked' },
    { name: 'group-size', claim: 'groups of 16 vs 4', ours: 'G=16', anchor: 'G=4' },
    {
      name: 'filter',
      claim: 'groups without variance left out vs in the mean',
      ours: 'filtered',
      anchor: 'grpo',
    },
    {
      name: 'dynamic-sampling',
      claim: 'dynamic sampling vs the filter alone',
      ours: 'refilled',
      anchor: 'filtered',
    },
    {
      name: 'clip-higher',
      claim: 'clip-higher vs symmetric clip',
      ours: 'clip-higher',
      anchor: 'clip-symmetric',
    },
    { name: 'kl', claim: 'with vs without KL', ours: 'kl', anchor: 'grpo' },
    { name: 'shaping', claim: 'shaped reward vs outcome only', ours: 'shaped', anchor: 'outcome-only' },
  ],
};

const THREE_CALLS: Group = {
  name: 'claims-three-calls',
  title: 'Claims about group-relative training: three calls an episode',
  setting: MANY_TURNS,
  cases: [
    caseOf('grpo', {}),
    caseOf('unmasked', {}, { alter: unmasked }),
    caseOf('ppo', { algorithm: { kind: 'ppo' } }),
  ],
  claims: [
    {
      name: 'mask-three-calls',
      claim: 'three calls: observations masked vs learnt from',
      ours: 'grpo',
      anchor: 'unmasked',
    },
    { name: 'critic', claim: 'three calls: group baseline vs critic', ours: 'grpo', anchor: 'ppo' },
  ],
};

const DIVERSITY: Group = {
  name: 'claims-diversity',
  title: 'Claims about diversity: molecules',
  setting: MOLECULES,
  cases: [
    caseOf('plain', {}),
    caseOf('count', {}, { reward: paidForDiversity('count') }),
    caseOf('similarity', {}, { reward: paidForDiversity('similarity') }),
  ],
  claims: (['count', 'similarity'] as const).flatMap((by): Claim[] => [
    {
      name: `diversity-${by}`,
      claim: `molecules: different right ones, with a bonus by ${by} vs without`,
      ours: by,
      anchor: 'plain',
      measure: 'distinct answers',
    },
    {
      name: `success-${by}`,
      claim: `molecules: success, with a bonus by ${by} vs without`,
      ours: by,
      anchor: 'plain',
    },
  ]),
};

/** What is measured together, in one setting. */
export const GROUPS: readonly Group[] = [ONE_CALL, THREE_CALLS, DIVERSITY];

/**
 * What is said of training agents (shared texts and the papers that they cite), at equal sampled tokens from the same warm
 * start: `ours` is success with what is recommended, `anchor` without, or what else a claim measures; medians over the seeds, and their paired difference.
 */
export async function* claimsBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const wanted = chosen(
    GROUPS.flatMap((group) => group.claims),
    options,
  );
  for (const group of GROUPS) {
    const claims = group.claims.filter((claim) => wanted.includes(claim));
    if (claims.length === 0) continue;
    const trials = await compare(
      {
        ...group,
        setting: options.quick ? quickly(group.setting) : group.setting,
        only: new Set(claims.flatMap(({ ours, anchor }) => [ours, anchor])),
        seeds: seedsOf(options),
        panels: group.claims.map(({ claim, ours, anchor }) => ({ heading: claim, cases: [ours, anchor] })),
      },
      options,
    );
    for (const { claim, ours, anchor, measure = 'success' } of claims) {
      const sides = { ours: after(trials, ours, measure), anchor: after(trials, anchor, measure) };
      yield {
        ...benchRow({ bench: 'claims', case: claim, unit: measure, better: 'more', ...sides }),
        difference: pairedDifference(sides),
      };
    }
  }
}

const after = (trials: readonly Trial[], name: string, measure: Measure): number[] =>
  trials.filter((trial) => trial.case === name).map(MEASURES[measure]);
