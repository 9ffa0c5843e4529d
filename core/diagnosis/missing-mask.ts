import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { known } from './series.ts';

/** Nats a token. The engines' own rounding is 1e-6 in float32 and some 1e-2 in bfloat16. */
const GAP = 0.1;
const STEPS = 3;

const GAPS = [
  ['gap', ''],
  ['widestGap', ' at the positions or lengths where it is widest'],
] as const;

/**
 * Tokens are learnt that the policy did not sample: what tools said is in the mask (Search-R1, Jin et al. 2025, arXiv
 * 2503.09516). Nothing is statistical about it. A batch that has more masked tokens than its step sampled is wrong at
 * once. And what a tool said has no log-prob of the sampler (it is 0), so before the first update, where both engines
 * have the same weights, the learner's log-probs are far from those that came with the episodes. Other weights, another
 * template or tokenizer on one of the two sides look the same. Where only some positions or lengths are apart, the two
 * engines scale positions differently, say, or a cache holds what other weights computed.
 */
export const missingMask: Diagnosis = {
  remedy:
    'Stop and look at one batch: is the mask 1 at sampled tokens only, and are tokens and log-probs those of the sampler? Then go back to the checkpoint before.',
  find(series, { lateEpisodes }) {
    const learnt = known(series, 'learnt').at(-1);
    const more: Evidence[] =
      learnt !== undefined && learnt > 1 && !lateEpisodes
        ? [{ what: 'trained tokens for each sampled one', now: learnt, before: null, limit: 1 }]
        : [];
    for (const [signal, where] of GAPS) {
      const gaps = known(series, signal).slice(-STEPS);
      const least = Math.min(...gaps);
      if (gaps.length < STEPS || least < GAP) continue;
      const what = `mean gap of log-probs between learner and sampler${where}, nats`;
      more.push({ what, now: least, before: null, limit: GAP });
    }
    return more.length === 0 ? null : more;
  },
};
