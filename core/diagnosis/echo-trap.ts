import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { before, hasMastered, now } from './series.ts';
import type { Series } from './series.ts';
import { varianceFallen } from './variance-fall.ts';

const FALL = 0.5;
const SURGE = 2;
const RISE = 0.25;

/**
 * The policy repeats what was rewarded once (RAGEN, Wang et al. 2025, arXiv 2504.20073, section 3.2): the variance of
 * rewards within groups and the entropy fall first, the norm of the gradient surges, and the reward falls last. The
 * reward is no part of the rule, so it speaks before. A policy that gets better at its tasks has less variance and
 * entropy, too: so the variance may fall as far as success has risen, and a third sign is asked for. The norm of the
 * gradient has doubled (in the median, one spike is an outlier), or samples of a task are word for word one another, a
 * quarter more of them than when the stage began.
 */
export const echoTrap: Diagnosis = {
  remedy:
    'Go back to the last healthy checkpoint and train on with a lower learning rate, a higher temperature or an entropy bonus, on the groups whose rewards vary most (StarPO-S).',
  find(series) {
    const [variance, entropy] = [varianceFallen(series), entropyFallen(series)];
    if (variance === null || entropy === null || hasMastered(series)) return null;
    const third = [surge(series), repetition(series)].filter((evidence) => evidence !== null);
    return third.length === 0 ? null : [variance, entropy, ...third];
  },
};

function entropyFallen(series: Series): Evidence | null {
  const [first, last] = [before(series, 'entropy'), now(series, 'entropy')];
  if (first === null || last === null || last > FALL * first) return null;
  return { what: 'entropy, nats a token', now: last, before: first, limit: FALL * first };
}

function surge(series: Series): Evidence | null {
  const [first, last] = [before(series, 'gradientNorm'), now(series, 'gradientNorm')];
  if (first === null || last === null || last < SURGE * first) return null;
  return { what: 'norm of the gradient', now: last, before: first, limit: SURGE * first };
}

function repetition(series: Series): Evidence | null {
  const [first, last] = [before(series, 'duplicates'), now(series, 'duplicates')];
  if (first === null || last === null || last < first + RISE) return null;
  return {
    what: 'part of episodes that repeat one of their group',
    now: last,
    before: first,
    limit: first + RISE,
  };
}
