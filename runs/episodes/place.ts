import { GradusError } from '../../core/errors.ts';
import { rolloutKey } from '../../store/keys.ts';

/** Where an episode stands. */
export interface Place {
  run: string;
  /** A stage, or an evaluation by its name. */
  stage: string;
  step: number;
  /** Number of the rollout group in the step. */
  group: number;
  /** Index among the group's episodes. */
  episode: number;
}

/** As people write it, in commands and in links. */
export const placeOf = ({ run, stage, step, group, episode }: Place): string =>
  [run, stage, step, group, episode].join('/');

const FORM = 'RUN/STAGE/STEP/GROUP/EPISODE, such as demo/levels-1-3/17/4/0';
/** More digits are no number of anything. Groups of an asynchronous stage have numbers below 2^49. */
const MOST_DIGITS = { step: 9, group: 15, episode: 9, task: 9 };

/** Throws GradusError('spec', 'invalid-place') that says which part is none. */
export function parsePlace(text: string): Place {
  const parts = text.split('/');
  if (parts.length !== 5)
    throw invalid(text, `it has ${parts.length} part${parts.length === 1 ? '' : 's'} and not five`);
  const [run, stage, step, group, episode] = parts as [string, string, string, string, string];
  try {
    rolloutKey(run, stage, 0, 'group');
  } catch {
    throw invalid(text, 'a run and a stage are made of letters, digits, ".", "_" and "-"');
  }
  return {
    run,
    stage,
    step: numberIn(text, 'step', step),
    group: numberIn(text, 'group', group),
    episode: numberIn(text, 'episode', episode),
  };
}

/** A number of a place by itself, as in an address. Throws as `parsePlace`. */
export const placeNumber = (what: keyof typeof MOST_DIGITS, written: string): number =>
  numberIn(written, what, written);

function numberIn(text: string, what: keyof typeof MOST_DIGITS, written: string): number {
  if (!/^\d+$/.test(written) || written.length > MOST_DIGITS[what])
    throw invalid(text, `its ${what} ${JSON.stringify(written)} is no whole number`);
  return Number(written);
}

const invalid = (text: string, why: string): GradusError =>
  new GradusError(
    'spec',
    'invalid-place',
    `${JSON.stringify(text.slice(0, 200))} is not where an episode stands: ${why}. Write ${FORM}`,
  );
