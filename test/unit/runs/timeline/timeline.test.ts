import { expect, test } from 'vitest';
import type { ExecutionHistory } from '../../../../runs/temporal/history.ts';
import type { DescribedActivity } from '../../../../runs/temporal/temporal-values.ts';
import { timelineOf } from '../../../../runs/timeline/timeline.ts';
import type { Timeline } from '../../../../runs/timeline/timeline.ts';
import { lanesOf, lossInWords } from '../../../../runs/timeline/timeline-lanes.ts';
import { recordedHistory } from '../../../support/recorded-history.ts';

// Of a run whose rollout worker was stopped when the first long calls of a group came back, and killed: two episodes'
// `resume` were on it. The other one's call came back before.
const GROUP = recordedHistory('fixtures/histories/killed-resume-group.json', 'held/rl/1/2');
const PAGE = recordedHistory('fixtures/histories/killed-resume-page.json', 'held/rl/1/2/0');
const NOW = Date.parse('2026-11-23T09:00:00Z');
const at = (time: string): number => Date.parse(`2026-11-23T08:30:${time}Z`);

const read = (histories: ExecutionHistory[], sample: number | null = null): Timeline =>
  timelineOf(histories, { episode: sample === null ? null : { task: 0, sample }, leftOut: [], now: NOW });
const named = (timeline: Timeline, name: string) =>
  timeline.activities.filter((activity) => activity.name === name);

test('a lost attempt is told with how it ended, who took over, and within which bounds it cost how many seconds', () => {
  const [resume] = named(read([GROUP, PAGE], 0), 'resume');
  expect(resume).toMatchObject({ attempts: 2, state: 'done', worker: '32644@vm', queue: 'gradus-rollout' });
  const { lost } = resume!;
  expect(lost).toMatchObject({
    attempts: 1,
    fault: { kind: 'silent', message: 'activity Heartbeat timeout' },
    worker: null,
    exact: false,
    open: false,
  });
  // Six seconds of silence and the first pause, of the 6.84 s between being asked for and the second attempt.
  expect(lost!.seconds.atLeast).toBeCloseTo(6.2, 9);
  expect(lost!.seconds.atMost).toBeCloseTo(6.8414, 3);
  expect(lost!.from).toBeCloseTo(at('20.113'), -1);
  expect(lost!.to).toBeCloseTo(at('26.755'), -1);
});

test('what was finished before is not repeated: the long call, and where the episode went on from', () => {
  const [resume] = named(read([GROUP, PAGE], 0), 'resume');
  expect(resume!.kept).toMatchObject({ calls: 1, tokens: null });
  expect(resume!.kept!.callSeconds).toBeCloseTo(2.0435, 3);
  expect(resume!.from.map(({ key }) => key)).toEqual(['runs/held-ops/parts/rl/000001/2/start-0.json']);
});

test('in words: how it was lost, what that cost, and what was not repeated', () => {
  const timeline = read([GROUP, PAGE], 0);
  const [resume] = named(timeline, 'resume');
  resume!.kept!.tokens = 17;
  expect(lossInWords(resume!)).toBe(
    'an attempt gave no sign of life: its worker was killed, or hung; cost 6.20 to 6.84 s, until the successful attempt began; not repeated: 1 finished long call (2.04 s), 17 sampled tokens',
  );
  const lane = lanesOf(timeline).find(({ label }) => label === 'resume')!;
  expect(lane.bars.map(({ look }) => look)).toEqual(['lost', 'waited', 'done']);
  const [lost, waited, done] = lane.bars;
  expect([lost!.to, waited!.to]).toEqual([waited!.from, done!.from]);
  expect(done!.title).toContain('attempt 2, on 32644@vm, done in 0.02 s');
});

test('an episode has what was done for it and for all, and nothing of the others', () => {
  const timeline = read([GROUP, PAGE], 0);
  expect(timeline.activities.map(({ name }) => name)).toEqual([
    'advance',
    'dueCalls',
    'callTool',
    'resume',
    'gather',
    'verifyGroup',
  ]);
  expect(
    timeline.activities.every(
      ({ episodes }) => episodes === null || episodes.some((one) => one.sample === 0),
    ),
  ).toBe(true);
  expect(named(timeline, 'callTool')[0]).toMatchObject({
    tool: 'calculator',
    call: 'held-ops/rl/1/2/0/1',
    attempts: 1,
    lost: null,
  });
  // Sample 2 answered without a call: it waited for nobody, and lost nothing.
  expect(named(read([GROUP, PAGE], 2), 'callTool')).toEqual([]);
  expect(read([GROUP, PAGE], 2).lost).toEqual({ attempts: 0, atLeast: 0, atMost: 0 });
});

test('losses at the same time have cost the time but once; of a group nobody knows how much it waited for them', () => {
  const group = read([GROUP, PAGE]);
  expect(group).toMatchObject({ episodes: 4, lost: { attempts: 2, atLeast: null } });
  // The first was asked for at 20.114, the second began its second attempt at 27.955.
  expect(group.lost.atMost).toBeCloseTo(7.841, 3);
  expect(read([GROUP, PAGE], 0).lost.atLeast).toBeCloseTo(6.2, 9);
  expect([group.from, group.to].every((moment) => moment! > at('16.0') && moment! < at('30.0'))).toBe(true);
});

test('an attempt that is lost and not yet made again is open: it says which worker had it and when the next is due', () => {
  const upTo = PAGE.events.findIndex(({ eventId }) => Number(eventId) === 24);
  const pending = {
    activityId: '5',
    activityType: { name: 'resume' },
    state: 1,
    attempt: 2,
    lastWorkerIdentity: '31789@vm',
    lastFailure: { message: 'activity Heartbeat timeout', timeoutFailureInfo: { timeoutType: 4 } },
    nextAttemptScheduleTime: { seconds: Math.floor(at('26.317') / 1000), nanos: 317_000_000 },
  } as unknown as DescribedActivity;
  const running = { ...PAGE, events: PAGE.events.slice(0, upTo), pending: [pending], running: true };
  const now = at('26.3');
  const timeline = timelineOf([{ ...GROUP, running: true }, running], {
    episode: { task: 0, sample: 0 },
    leftOut: [],
    now,
  });
  expect(timeline.to).toBeNull();
  const [resume] = named(timeline, 'resume');
  expect(resume).toMatchObject({ state: 'waiting', attempts: 1, started: null, worker: null });
  expect(resume!.live!.next).toBeCloseTo(at('26.317'), 0);
  expect(resume!.lost).toMatchObject({ attempts: 1, worker: '31789@vm', open: true, exact: true });
  expect(resume!.lost!.to).toBeCloseTo(at('26.117'), 0);
  expect(resume!.lost!.seconds.atMost).toBeCloseTo((now - at('20.114')) / 1000, 2);
});

test('workflows that somebody else started under such a name are shown as they are, whatever they were asked', () => {
  const { events: strange } = recordedHistory('fixtures/histories/killed-resume-group.json', 'held/rl/1/2');
  for (const event of strange) {
    const asked = event.activityTaskScheduledEventAttributes;
    if (asked) asked.input = { payloads: [{ metadata: {}, data: new Uint8Array([0xff]) }] };
    const started = event.workflowExecutionStartedEventAttributes;
    if (started) started.input = null;
  }
  const timeline = read([{ ...GROUP, events: strange }]);
  expect(timeline.episodes).toBe(0);
  expect(timeline.activities.map(({ name, from }) => [name, from])).toEqual([
    ['advance', []],
    ['verifyGroup', []],
  ]);
});
