import type { ReweighedEpisode } from '../../core/algorithms/reweigh.ts';
import { GradusError } from '../../core/errors.ts';
import { runPrefix } from '../../store/keys.ts';
import { placeOf } from '../episodes/place.ts';
import type { ReweighedStep } from './reweigh.ts';

// What a re-weighed step comes to in words, for terminal and page.

/** Throws GradusError('spec', 'invalid-place') for what is not `RUN/STAGE/STEP`. */
export function parseStepPlace(text: string): { run: string; stage: string; step: number } {
  const [run, stage, step, ...rest] = text.split('/');
  if (run && stage && step !== undefined && /^\d{1,9}$/.test(step) && rest.length === 0) {
    runPrefix(run);
    runPrefix(stage);
    return { run, stage, step: Number(step) };
  }
  throw new GradusError(
    'spec',
    'invalid-place',
    `${JSON.stringify(text.slice(0, 200))} is no step: write RUN/STAGE/STEP, such as demo/levels-1-3/17`,
  );
}

/** Number of the group of the step itself that an episode lies in; null of what an earlier step has sampled. */
export function groupNumber({ group }: Pick<ReweighedEpisode, 'group'>): number | null {
  const [, number] = /^group-(\d+)(?:\.judged)?$/.exec(group) ?? [];
  return number === undefined ? null : Number(number);
}

export function episodePlace(
  { run, stage, step }: Pick<ReweighedStep, 'run' | 'stage' | 'step'>,
  one: Pick<ReweighedEpisode, 'group' | 'episode'>,
): string | null {
  const group = groupNumber(one);
  return group === null ? null : placeOf({ run, stage, step, group, episode: one.episode });
}

/** Whether the reward as it is gives what is stored. */
export function reproductionText({ method, reproduced }: ReweighedStep): string {
  switch (reproduced.exactly) {
    case true:
      return `The reward as it is, credited by ${method}, gives every stored reward and the batch of the step, to the bit.`;
    case 'no-batch':
      return `The reward as it is gives every stored reward. The step has no batch: no sample of it had an advantage by ${method}.`;
    default:
      return `The reward as it is does not give what is stored: ${reproduced.why}. What follows compares two computations, and neither with what was trained.`;
  }
}

/** The totals in sentences. */
export function summaryOf({ totals, dominates }: ReweighedStep): string[] {
  const { tasks, episodes, otherRewards, flipped, begin, stop, teaching } = totals;
  return [
    `${otherRewards} of ${episodes} rewards differ; the advantages of ${flipped} episodes have the other sign; ` +
      `${begin} episodes would be trained on that were not, and ${stop} would not be that were.`,
    `${teaching.after} of ${tasks} tasks would teach, where ${teaching.before} did: ${teaching.begin} begin to, ${teaching.stop} stop.`,
    ...(dominates
      ? [
          'All that is not the outcome weighs more than it: a failure could be worth more than a success, and a spec would have to say "shapingMayDominate": true.',
        ]
      : []),
  ];
}
