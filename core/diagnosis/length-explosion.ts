import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { before, now } from './series.ts';

const GROWTH = 1.5;
const CUT_OFF = 0.1;
const GAIN = 0.05;

/**
 * Episodes grow by half, and it is no use: more of them are cut off by a limit, or success has not risen with them
 * (seeds 004, 9.1: "agent drags to context limit"). Length that pays is no alarm.
 */
export const lengthExplosion: Diagnosis = {
  remedy:
    'Look whether the reward grows with length. Add a length penalty (overlong shaping), lower maxTurns or maxCompletionTokens, or mask truncated episodes.',
  find(series) {
    const [first, last] = [before(series, 'length'), now(series, 'length')];
    if (first === null || last === null || last < GROWTH * first) return null;
    const grown: Evidence = {
      what: 'sampled tokens an episode',
      now: last,
      before: first,
      limit: GROWTH * first,
    };
    const useless = cutOff() ?? withoutGain();
    return useless && [grown, useless];

    function cutOff(): Evidence | null {
      const [usual, truncated] = [before(series, 'truncated'), now(series, 'truncated')];
      if (usual === null || truncated === null || truncated < usual + CUT_OFF) return null;
      const what = 'part of episodes cut off by a limit';
      return { what, now: truncated, before: usual, limit: usual + CUT_OFF };
    }

    function withoutGain(): Evidence | null {
      const [start, success] = [before(series, 'success'), now(series, 'success')];
      if (start === null || success === null || success > start + GAIN) return null;
      // Success stays where it is, too, where harder and longer tasks are drawn as soon as the easy ones are solved.
      if (series.gain !== null && series.gain > GAIN) return null;
      return { what: 'success in training', now: success, before: start, limit: start + GAIN };
    }
  },
};
