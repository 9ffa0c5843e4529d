import { alarmText, DIAGNOSES } from './alarm.ts';
import type { Alarm, DiagnosisName } from './alarm.ts';

/**
 * What a stage can do about an alarm. `note` says it. `explore` raises the temperature, `slow-down` lowers the learning
 * rate, `filter` learns from the groups alone whose rewards vary most (StarPO-S), all of them for the rest of the stage
 * and more with every alarm. `roll-back` goes to the last healthy checkpoint, `ask` to a person.
 */
export const ACTIONS = ['note', 'explore', 'slow-down', 'filter', 'rollback', 'ask'] as const;
export type AlarmAction = (typeof ACTIONS)[number];

/** Absent in specs that say nothing of them, as in those from before they were known: they are noted. */
type Newer = 'low-ess' | 'stale-samples' | 'constant-judge' | 'empty-batch';

/** What a spec says: the actions at each alarm, and how far each goes. */
export interface Rules
  extends
    Record<Exclude<DiagnosisName, Newer>, AlarmAction[]>,
    Partial<Record<Newer, AlarmAction[] | undefined>> {
  /** `explore` multiplies the temperature by this, up to `temperatureAtMost` times the spec's. */
  temperatureFactor: number;
  temperatureAtMost: number;
  /** `slow-down` multiplies the learning rate by this. */
  learningRateFactor: number;
  /** `filter` keeps this part of the groups. */
  keepGroups: number;
}

/** Whether some alarm may lead back to an earlier checkpoint, which must then be kept. */
export const mayGoBack = (rules: Rules): boolean =>
  DIAGNOSES.some((name) =>
    ['rollback', 'ask'].some((action) => ruled(rules, name).includes(action as AlarmAction)),
  );

/** A run that began with an earlier version has no rules for alarms that it did not know: they are noted. */
const ruled = (rules: Partial<Rules>, name: DiagnosisName): AlarmAction[] => rules[name] ?? ['note'];

/** By what a stage differs from its spec. */
export interface Adjusted {
  learningRateFactor: number;
  temperatureFactor: number;
  /** Part of a step's groups that is learnt from, those whose rewards vary most. */
  keepGroups: number;
}

export const asSpecified = (): Adjusted => ({ learningRateFactor: 1, temperatureFactor: 1, keepGroups: 1 });

/** An alarm, with what is done about it besides saying it. */
export interface HeededAlarm extends Alarm {
  actions: AlarmAction[];
}

/** The alarm in one line, with what was done. */
export const heededText = ({ actions, ...alarm }: HeededAlarm): string =>
  `${alarmText(alarm)}${actions.length === 0 ? '' : ` Done: ${actions.join(', ')}.`}`;

interface Acted {
  alarms: HeededAlarm[];
  adjusted: Adjusted;
  /** What the stage is to do at once; a person is asked rather than passed over. */
  decision: { action: 'rollback' | 'ask'; reason: string } | null;
}

/** What follows from a step's alarms. Each action is carried out once, however many alarms ask for it. */
export function act(alarms: readonly Alarm[], rules: Rules, before: Adjusted): Acted {
  const asked = new Set(alarms.flatMap(({ name }) => ruled(rules, name)));
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
  const first = (action: AlarmAction): Alarm | undefined =>
    alarms.find(({ name }) => ruled(rules, name).includes(action));
  const [toAsk, toGoBack] = [first('ask'), first('rollback')];
  const decisive = toAsk ?? toGoBack;
  return {
    alarms: alarms.map((alarm) => ({
      ...alarm,
      actions: ruled(rules, alarm.name).filter((action) => action !== 'note'),
    })),
    adjusted,
    decision: decisive ? { action: toAsk ? 'ask' : 'rollback', reason: alarmText(decisive) } : null,
  };
}
