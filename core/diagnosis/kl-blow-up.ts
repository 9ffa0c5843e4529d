import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { now } from './series.ts';

const KL = 0.5;
const CLIPPED = 0.3;

/**
 * The policy runs away from where it comes from (Schulman 2020, "Approximating KL divergence"): half a nat a token from
 * the reference, or updates so large that three tokens in ten are clipped. Where RL works it moves by hundredths of a
 * nat, and clips hundredths of the tokens. Neither is said of what is otherwise by design: GSPO clips whole sequences,
 * by bounds so narrow that a good part of them is always beyond (15 in a hundred where PPO clips one in a thousand:
 * Zheng et al. 2025, section 5.2), and a student begins as far from its teachers as it is.
 */
export const klBlowUp: Diagnosis = {
  remedy:
    'Lower the learning rate or the passes over a batch, raise beta, and go back to an earlier checkpoint.',
  find(series, { klTo, clipsSequences }) {
    const evidence: Evidence[] = [];
    const kl = now(series, 'kl');
    if (klTo === 'reference' && kl !== null && kl >= KL) {
      evidence.push({ what: 'KL to the reference, nats a token', now: kl, before: null, limit: KL });
    }
    const clipped = now(series, 'clipped');
    if (!clipsSequences && clipped !== null && clipped >= CLIPPED) {
      evidence.push({ what: 'part of clipped tokens', now: clipped, before: null, limit: CLIPPED });
    }
    return evidence.length === 0 ? null : evidence;
  },
};
