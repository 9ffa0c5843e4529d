import type { FC } from 'hono/jsx';
import type { Place } from '../../../runs/episodes/place.ts';
import type { ReplayJob } from '../../../runs/replay/jobs.ts';
import type { Context } from '../../context.ts';
import { ActionButton } from '../../parts/action.tsx';
import { Time, duration } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';
import type { ReplayView } from './address.ts';
import { jobAt, replayAt } from './address.ts';
import { Result } from './result.tsx';
import { ForkForm } from './fork.tsx';

export function replayName({ id, request: { fork } }: ReplayJob): string {
  if (fork === null) return `${id}: a replay`;
  const what = fork.token === null ? 'drawn anew' : `token ${fork.token}`;
  return `${id}: a fork at ${fork.at}, ${what}${fork.seed === null ? '' : `, seed ${fork.seed}`}`;
}

export const ReplayPanel: FC<{ place: Place; job: ReplayJob; looked: ReplayView; context: Context }> = ({
  place,
  job,
  looked,
  context,
}) => {
  const { state } = job;
  if (state.kind === 'running') {
    const { since, progress } = state;
    return (
      <>
        <p role="status">
          <span class="status running">running</span> for {duration((Date.now() - since) / 1000)}
          {progress && `: ${progress.tokens}${progress.total === null ? '' : ` of ${progress.total}`} tokens`}
          . <a href={jobAt(place, job.id)}>Look again</a>
        </p>
        {context.actions && (
          <ActionButton to={`${replayAt(place)}/stop`} token={context.formToken} label="Stop it">
            <input type="hidden" name="job" value={job.id} />
          </ActionButton>
        )}
      </>
    );
  }
  if (state.kind === 'failed') {
    return (
      <p role="status">
        <span class="bad">There is no result</span>: <Text value={state.reason} max={2000} />
      </p>
    );
  }
  const { answer, at } = state;
  return (
    <>
      <p class="note">
        {replayName(job)}, done at <Time at={at} /> UTC with the weights{' '}
        <code>{answer.checkpoint.weights.slice(0, 12)}</code> of step {answer.checkpoint.step},{' '}
        {answer.decoder}
      </p>
      {answer.replay && <Result place={place} job={job} replay={answer.replay} looked={looked} />}
      {answer.fork && <ForkForm place={place} job={job} fork={answer.fork} answer={answer} looked={looked} />}
    </>
  );
};
