import { SERVED_IMPORTANCE_CAP } from '../../core/schema/policy.ts';
import { caseOf, MANY_TURNS, MOLECULES, paidForDiversity, SETTING, unmasked } from './cases.ts';
import type { Case, TrialSetting, Trial } from './trial.ts';

const success = ({ points }: Trial): number => points.at(-1)!.success;
const distinct = ({ distinct: answers }: Trial): number => answers;

/** `ours` is the side that is said to be better; both are names of cases. */
interface Claim {
  name: string;
  claim: string;
  ours: string;
  anchor: string;
  measure: (trial: Trial) => number;
}

const claim = (name: string, ours: string, anchor: string, words: string, measure = success): Claim => ({
  name,
  claim: words,
  ours,
  anchor,
  measure,
});

interface Group {
  name: string;
  title: string;
  setting: TrialSetting;
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
    claim('mask', 'grpo', 'unmasked', 'observations masked vs learnt from'),
    claim('group-size', 'G=16', 'G=4', 'groups of 16 vs 4'),
    claim('filter', 'filtered', 'grpo', 'groups without variance left out vs in the mean'),
    claim('dynamic-sampling', 'refilled', 'filtered', 'dynamic sampling vs the filter alone'),
    claim('clip-higher', 'clip-higher', 'clip-symmetric', 'clip-higher vs symmetric clip'),
    claim('kl', 'kl', 'grpo', 'with vs without KL'),
    claim('shaping', 'shaped', 'outcome-only', 'shaped reward vs outcome only'),
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
    claim('mask-three-calls', 'grpo', 'unmasked', 'three calls: observations masked vs learnt from'),
    claim('critic', 'grpo', 'ppo', 'three calls: group baseline vs critic'),
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
  claims: ['count', 'similarity'].flatMap((by) => {
    const how = `with a bonus by ${by} vs without`;
    return [
      claim(`diversity-${by}`, by, 'plain', `molecules: different right ones, ${how}`, distinct),
      claim(`success-${by}`, by, 'plain', `molecules: success, ${how}`),
    ];
  }),
};

/** What is measured together, in one setting. */
/** All are weighed by importance, so that nothing but the weights of the decoder differs. */
const WEIGHED = { algorithm: { importanceCap: SERVED_IMPORTANCE_CAP } };
const rounded = (dtype: string): Case => caseOf(dtype, WEIGHED, { policy: { kind: 'onnx', dtype } });

const ROUNDED: Group = {
  name: 'claims-rounded',
  title: 'Rollouts with rounded weights',
  setting: SETTING,
  cases: [caseOf('float32', WEIGHED), rounded('bfloat16'), rounded('int8')],
  claims: [
    claim('bfloat16', 'bfloat16', 'float32', 'rollouts with weights in bfloat16 teach as well as in float32'),
    claim('int8', 'int8', 'float32', 'rollouts with weights in int8 teach as well as in float32'),
  ],
};

export const GROUPS: readonly Group[] = [ONE_CALL, THREE_CALLS, DIVERSITY, ROUNDED];
export const unitOf = ({ measure }: Claim): string => (measure === distinct ? 'distinct answers' : 'success');
