import { setTimeout as delay } from 'node:timers/promises';
import type { RunObserver, RunView } from '../runs/overview/run.ts';

/** What a person has asked of a run from its page. */
export type SteerRequest = { kind: 'pause' | 'resume' | 'stop' } | { kind: 'answer'; question: string };

const GOES_ON = ['running', 'waiting'];

/** Whether a run says of itself that it is as it was asked to be; of one that does not say how it stands it is not known. */
export function isDone(
  asked: SteerRequest,
  { execution, progress }: Pick<RunView, 'execution' | 'progress'>,
): boolean {
  if (execution.value !== null && execution.value.closedAt !== null) return true;
  if (progress.value === null || progress.problem !== null) return false;
  const { status, question } = progress.value;
  switch (asked.kind) {
    case 'answer':
      return question?.id !== asked.question;
    case 'pause':
      // While a person is asked, that it is paused does not show.
      return status !== 'running';
    case 'resume':
      return status !== 'paused';
    default:
      return status !== 'paused' && !GOES_ON.includes(status);
  }
}

const EVERY_MS = 100;

/** Looks until the run is as it was asked to be, for `withinMs` at most: then whoever asked is shown that it is not yet. */
export async function untilDone(
  observer: RunObserver,
  run: string,
  asked: SteerRequest,
  withinMs: number,
): Promise<boolean> {
  const until = performance.now() + withinMs;
  for (;;) {
    if (isDone(asked, await observer.lookAnew(run))) return true;
    if (performance.now() >= until) return false;
    await delay(EVERY_MS);
  }
}

/** As it stands in the address of the run's page. */
export const steerRequestIn = (
  kind: string | undefined,
  question: string | undefined,
): SteerRequest | null => {
  if (kind === 'pause' || kind === 'resume' || kind === 'stop') return { kind };
  return kind === 'answer' && question !== undefined ? { kind, question } : null;
};

export const askedQuery = (asked: SteerRequest): string =>
  `?${new URLSearchParams({ asked: asked.kind, ...(asked.kind === 'answer' && { question: asked.question }) }).toString()}`;

const TEXTS: Record<SteerRequest['kind'], string> = {
  pause: 'It was asked to pause',
  resume: 'It was asked to go on',
  stop: 'It was asked to stop',
  answer: 'The answer was sent',
};

export const askedText = ({ kind }: SteerRequest): string =>
  `${TEXTS[kind]}, and has not confirmed that yet: this page shows the state before. The note goes away when it has.`;
