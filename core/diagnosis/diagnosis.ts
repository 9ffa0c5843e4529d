import type { ErrorShare } from '../training/shared-error.ts';
import type { Evidence } from './alarm.ts';
import type { Series } from './series.ts';

/** What a diagnosis must know of the stage besides what happened in it. */
export interface DiagnosisSetting {
  /** What a full score of the outcome's verifier adds to the reward. */
  outcomeWeight: number;
  /** Episodes of earlier steps may come before the learner again. */
  lateEpisodes: boolean;
  /** What `kl` is measured to: a stage that learns from teachers begins far from them. */
  klTo: 'reference' | 'teachers';
  /** A ratio of whole sequences is clipped, so that being clipped is the rule and not a sign. */
  clipsSequences: boolean;
  /** What must differ in rewards for something to be learnt (`Plan.contrast`). */
  contrast: 'task' | 'step' | 'none';
  /** The temperature of sampling is on its way from one to another, and the entropy with it. */
  temperatureMoves: boolean;
  /**
   * How stale samples of an asynchronous stage may be, in learner steps, and for how many steps what may be in flight at
   * once is enough: Infinity where as much is as the bound allows. null of other stages, and where none may be stale.
   */
  asynchronous: { maxStaleness: number; inFlight: number } | null;
  /** What the look of this step, if it has one, may spend of an error that all looks of the stage share. */
  look: Pick<ErrorShare, 'left' | 'looks'>;
}

/** A rule that names one thing that goes wrong. */
export interface Diagnosis {
  remedy: string;
  /** What speaks for it, all of it together; null where it cannot be named. */
  find: (series: Series, setting: DiagnosisSetting) => Evidence[] | null;
}
