import { printable } from '../../core/printable.ts';
import type { Timeline, TimelineActivity } from './timeline.ts';

// A timeline as bars, and the same in words: for a picture, a table and a terminal.

export interface TimelineBar {
  from: number;
  to: number;
  look: 'done' | 'failed' | 'lost' | 'waited' | 'running';
  title: string;
}

/** In the order in which a group goes through them; others come after. */
const ORDER = ['advance', 'dueCalls', 'callTool', 'resume', 'gather', 'judgeOwn', 'verifyGroup'];

/** A lane for each kind of activity. Times are milliseconds since the timeline's begin. */
export function lanesOf(timeline: Timeline): { label: string; bars: TimelineBar[] }[] {
  const names = [...new Set([...ORDER, ...timeline.activities.map(({ name }) => name)])];
  return names.flatMap((name) => {
    const bars = timeline.activities
      .filter((activity) => activity.name === name)
      .flatMap((activity) => barsOf(activity, timeline));
    return bars.length === 0 ? [] : [{ label: name, bars }];
  });
}

function barsOf(activity: TimelineActivity, { from, asOf }: Timeline): TimelineBar[] {
  const { scheduled, started, ended, lost, state } = activity;
  const end = ended ?? asOf;
  const what = activityInWords(activity);
  const bars: Omit<TimelineBar, 'title'>[] = [];
  if (lost) bars.push({ from: lost.from, to: lost.to, look: 'lost' });
  const waitedFrom = lost ? lost.to : scheduled;
  if (started === null || started > waitedFrom) {
    bars.push({ from: waitedFrom, to: started ?? end, look: 'waited' });
  }
  // One that failed for good is among the attempts that were lost.
  const counts = started !== null && !(lost?.exact === true && ended === lost.to);
  if (counts) bars.push({ from: started, to: end, look: lookOf(state) });
  return bars.map((bar) => ({
    ...bar,
    from: bar.from - from,
    to: bar.to - from,
    title: printable(bar.look === 'lost' ? `${what}: ${lossInWords(activity)!}` : what),
  }));
}

const lookOf = (state: TimelineActivity['state']): TimelineBar['look'] =>
  state === 'done' ? 'done' : state === 'running' ? 'running' : 'failed';

/** `resume, attempt 2 on 7@there`. */
function activityInWords({ name, tool, attempts, worker, state, started, ended }: TimelineActivity): string {
  const seconds = started !== null && ended !== null ? ` in ${secondsInWords((ended - started) / 1000)}` : '';
  return [
    tool === null ? name : `${name} ${tool}`,
    attempts === 0 ? 'not begun' : `attempt ${attempts}`,
    worker === null ? null : `on ${worker}`,
    `${state}${seconds}`,
  ]
    .filter((part) => part !== null)
    .join(', ');
}

/** What was lost of an activity, what that cost, and what it did not; null where nothing was. */
export function lossInWords({ lost, kept }: TimelineActivity): string | null {
  if (lost === null) return null;
  const { attempts, fault, worker, seconds, open } = lost;
  const how = {
    silent: 'gave no sign of life: its worker was killed, or hung',
    'too-long': 'took longer than it may',
    'nobody-came': 'found no worker',
    failed: `failed: ${fault.message}`,
    cancelled: 'was cancelled',
    unknown: `ended in an unknown way: ${fault.message}`,
  }[fault.kind];
  const cost = open
    ? `has cost ${secondsInWords(seconds.atMost)} so far`
    : `cost ${rangeText(seconds)}, until ${lost.exact && worker !== null ? 'it was given up' : 'the successful attempt began'}`;
  const what = attempts === 1 ? 'an attempt' : `${attempts} attempts, the last of which`;
  return `${what}${worker === null ? '' : ` on ${worker}`} ${how}; ${cost}${keptInWords(kept)}`;
}

function keptInWords(kept: TimelineActivity['kept']): string {
  if (kept === null) return '';
  const { calls, callSeconds, tokens } = kept;
  const parts = [
    calls === 0
      ? null
      : `${calls} finished long call${calls === 1 ? '' : 's'} (${secondsInWords(callSeconds)})`,
    tokens === null || tokens === 0 ? null : `${tokens} sampled token${tokens === 1 ? '' : 's'}`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? '' : `; not repeated: ${parts.join(', ')}`;
}

/** `6.2 to 6.8 s`; one number where both are the same. */
function rangeText({ atLeast, atMost }: { atLeast: number; atMost: number }): string {
  const [least, most] = [secondsInWords(atLeast), secondsInWords(atMost)];
  return least === most ? most : `${least.replace(/ s$/, '')} to ${most}`;
}

export const secondsInWords = (seconds: number): string =>
  seconds < 10 ? `${seconds.toFixed(2)} s` : `${seconds.toFixed(1)} s`;
