import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { AGO, before, now } from './series.ts';
import type { Series } from './series.ts';
import { notRisen } from './success-rise.ts';

const GROWTH = 1.5;
const CUT_OFF = 0.1;
/** Steps after which success has followed length, if it does. */
const FOLLOWS = 12;

/**
 * Episodes grow by half, and it is no use: more of them are cut off by a limit, or success has not risen with them (Dr.
 * GRPO, Liu et al. 2025, arXiv 2503.20783). Both since the stage began, or within the latest twelve to forty steps: what
 * was learnt before episodes grew is not what their length was good for. Length that pays is no alarm, nor is one of
 * which so few episodes tell that it may have paid.
 */
export const lengthExplosion: Diagnosis = {
  remedy:
    'Check whether the reward grows with length. Add a length penalty (overlong shaping), lower maxTurns or maxCompletionTokens, or mask truncated episodes.',
  find(series) {
    for (const then of [atFirst(series), ...lately(series)]) {
      const evidence = grownInVain(series, then);
      if (evidence !== null) return evidence;
    }
    return null;
  },
};

interface Then {
  length: number | null;
  truncated: number | null;
  success: number | null;
  /** By what the success of all levels has risen since. */
  gained: number | null;
}

const atFirst = (series: Series): Then => ({
  length: before(series, 'length'),
  truncated: before(series, 'truncated'),
  success: before(series, 'success'),
  gained: series.gain,
});

function lately({ marks, stageStep = 0, gain }: Series): Then[] {
  const oldEnough = stageStep % AGO >= FOLLOWS ? marks : marks.slice(0, -1);
  return oldEnough.map((mark) => ({
    ...mark,
    gained: gain !== null && typeof mark.gain === 'number' ? gain - mark.gain : null,
  }));
}

function grownInVain(series: Series, then: Then): Evidence[] | null {
  const length = now(series, 'length');
  if (then.length === null || length === null || length < GROWTH * then.length) return null;
  const grown: Evidence = {
    what: 'sampled tokens an episode',
    now: length,
    before: then.length,
    limit: GROWTH * then.length,
  };
  const useless = cutOff(series, then.truncated) ?? notRisen(series, then.success, then.gained);
  return useless && [grown, useless];
}

function cutOff(series: Series, usual: number | null): Evidence | null {
  const truncated = now(series, 'truncated');
  if (usual === null || truncated === null || truncated < usual + CUT_OFF) return null;
  const what = 'part of episodes cut off by a limit';
  return { what, now: truncated, before: usual, limit: usual + CUT_OFF };
}
