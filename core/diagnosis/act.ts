import { alarmText } from './alarm.ts';
import type { Alarm, DiagnosisName } from './alarm.ts';

/**
 * What a stage can do about an alarm. `note` says it. `explore` raises the temperature, `slow-down` lowers the learning
 * rate, `filter` learns from the groups alone whose rewards vary most (StarPO-S), all of them for the rest of the stage
 * and more with every alarm. `roll-back` goes to the last healthy checkpoint, `ask` to a person.
 */
export const ACTIONS = ['note', 'explore', 'slow-down', 'filter', 'roll-back', 'ask'] as const;
export type Action = (typeof ACTIONS)[number];

/** What a spec says: the actions at each alarm, and how far each goes. */
export interface Rules extends Record<DiagnosisName, Action[]> {
  /** `explore` multiplies the temperature by this, up to `temperatureAtMost` times the spec's. */
  temperatureFactor: number;
  temperatureAtMost: number;
  /** `slow-down` multiplies the learning rate by this. */
  learningRateFactor: number;
  /** `filter` keeps this part of the groups. */
  keepGroups: number;
}

/** By what a stage differs from its spec. */
export interface Adjusted {
  learningRateFactor: number;
  temperatureFactor: number;
  /** Part of a step's groups that is learnt from, those whose rewards vary most. */
  keepGroups: number;
}

export const asSpecified = (): Adjusted => ({ learningRateFactor: 1, temperatureFactor: 1, keepGroups: 1 });

export interface Acted {
  adjusted: Adjusted;
  /** What the stage is to do at once; a person is asked rather than passed over. */
  decision: { action: 'rollback' | 'ask'; reason: string } | null;
  /** What was found and done, in words, a line each. */
  notes: string[];
}

/** What follows from a step's alarms. Each action is carried out once, however many alarms ask for it. */
export function act(alarms: readonly Alarm[], rules: Rules, before: Adjusted): Acted {
  const asked = new Set(alarms.flatMap(({ name }) => rules[name]));
  const adjusted: Adjusted = {
    learningRateFactor: before.learningRateFactor * (asked.has('slow-down') ? rules.learningRateFactor : 1),
    temperatureFactor: asked.has('explore')
      ? Math.max(
          before.temperatureFactor,
          Math.min(rules.temperatureAtMost, before.temperatureFactor * rules.temperatureFactor),
        )
      : before.temperatureFactor,
    keepGroups: asked.has('filter') ? Math.min(before.keepGroups, rules.keepGroups) : before.keepGroups,
  };
  const first = (action: Action): Alarm | undefined =>
    alarms.find(({ name }) => rules[name].includes(action));
  const [toAsk, toGoBack] = [first('ask'), first('roll-back')];
  const decisive = toAsk ?? toGoBack;
  return {
    adjusted,
    decision: decisive ? { action: toAsk ? 'ask' : 'rollback', reason: alarmText(decisive) } : null,
    notes: [...alarms.map(alarmText), ...changes(before, adjusted)],
  };
}

const WORDS: Record<keyof Adjusted, string> = {
  learningRateFactor: 'learning rate',
  temperatureFactor: 'temperature',
  keepGroups: 'part of the groups that is learnt from',
};

const changes = (before: Adjusted, after: Adjusted): string[] =>
  (Object.keys(WORDS) as (keyof Adjusted)[])
    .filter((what) => before[what] !== after[what])
    .map((what) => `${WORDS[what]}: ${after[what].toPrecision(3)} times that of the spec`);
