import { workflowInfo } from '@temporalio/workflow';
import { addIncidents } from '../../core/episode/incidents.ts';
import type { CurriculumState } from '../../core/training/curriculum.ts';
import { addTokens } from '../../core/training/figures.ts';
import { addTime, noTime } from '../../core/time/time-split.ts';
import type { Progress, ReportedStep } from '../control/messages.ts';

/** Alarms that `progress` shows. */
const MOST_ALARMS = 8;

/** What a run that continues as new still shows. Fields that may be missing are younger than some runs. */
export type CarriedProgress = Pick<Progress, 'incidents' | 'alarms' | 'seconds' | 'tokens'> &
  Partial<Pick<Progress, 'step' | 'heldOut' | 'learnerBackend' | 'unknownSignals' | 'changes'>>;

export function carriedProgress(shown: Progress): CarriedProgress {
  const { step, heldOut, seconds, tokens, learnerBackend, incidents, alarms, unknownSignals, changes } =
    shown;
  return {
    step,
    heldOut,
    seconds,
    ...(tokens && { tokens }),
    learnerBackend,
    incidents,
    alarms,
    unknownSignals,
    changes,
  };
}

/** What a run shows at its beginning, or where it goes on: its stages are named as soon as its spec is read. */
export function startProgress(carried?: CarriedProgress & { state: CurriculumState }): Progress {
  return {
    run: workflowInfo().workflowId,
    phase: carried ? 'next stage' : 'spec',
    status: 'running',
    failure: null,
    question: null,
    stages: [],
    step: carried?.step ?? null,
    heldOut: carried?.heldOut ?? null,
    before: carried?.state.before ?? null,
    after: null,
    checkpoint: carried?.state.checkpoint ?? null,
    finished: carried?.state.stages ?? [],
    seconds: carried?.seconds ?? noTime(),
    tokens: carried?.tokens ?? {},
    learnerBackend: carried?.learnerBackend ?? null,
    retrying: [],
    incidents: carried?.incidents ?? [],
    alarms: carried?.alarms ?? [],
    unknownSignals: carried?.unknownSignals ?? [],
    changes: carried?.changes ?? [],
  };
}

export function showStep(shown: Progress, { secondsSince, tokensSince, ...step }: ReportedStep): void {
  shown.step = step;
  shown.heldOut = step.heldOut ?? shown.heldOut;
  shown.checkpoint = step.checkpoint;
  shown.learnerBackend = step.backend ?? shown.learnerBackend;
  shown.seconds = addTime(shown.seconds, secondsSince);
  if (tokensSince)
    shown.tokens = {
      ...shown.tokens,
      [step.stage]: addTokens(shown.tokens?.[step.stage] ?? null, tokensSince)!,
    };
  shown.incidents = addIncidents(shown.incidents, step.incidents ?? []);
  const found = (step.alarms ?? []).map((alarm) => ({ stage: step.stage, ...alarm }));
  shown.alarms = [...shown.alarms, ...found].slice(-MOST_ALARMS);
}
