import type { PreferenceSpec } from '../algorithms/preference.ts';
import type { Incident } from '../episode/incidents.ts';
import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import type { SynthesisSpec } from '../schema/stages/synthesis.ts';
import type { Arm } from '../schema/tasks.ts';
import type { SynthesisFacts } from '../training/step-facts.ts';
import type { Shown } from '../training/supervised-stage.ts';
import type { UpdatePlan } from './batch.ts';
import type { Span } from './span.ts';

/** Of an episode, as the spec has them. */
export type EpisodeLimits = Pick<SamplingSpec, 'maxTurns' | 'maxCompletionTokens' | 'maxParallelCalls'>;

export interface DemonstrationsRequest {
  run: string;
  seed: number;
  stage: string;
  round: number;
  /** What earlier stages of the run have shown; absent: nothing. */
  shownBefore?: Shown;
  arms: Arm[];
  count: number;
  /** In the place of demonstrations of the arms: the data that was given, what it is called, and what learns preferences of it. */
  given?: { source: string; ref: BlobRef; prefers?: PreferenceSpec['kind'] };
  /** Demonstrations of which none fits into an episode are refused. Absent: nothing is. */
  limits?: EpisodeLimits;
  updates: UpdatePlan;
  /** For the tokenizer. */
  checkpoint: CheckpointRef;
}

/** Makes the data of a supervised stage. */
export interface SynthesizeRequest {
  run: string;
  seed: number;
  stage: string;
  arms: Arm[];
  how: SynthesisSpec;
  /** For the dialect. */
  checkpoint: CheckpointRef;
  reward: RewardSpec;
  limits: EpisodeLimits;
}

/** What was made; small enough to be carried along. */
export interface Synthesized {
  /** Lines of data, as somebody could have given them. */
  data: BlobRef;
  facts: SynthesisFacts;
}

export interface SynthesizeResult extends Synthesized {
  spans: Span[];
  incidents: Incident[];
}
