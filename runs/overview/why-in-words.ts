import { counted } from '../../core/counted.ts';
import { howLong } from '../../core/time/how-long.ts';
import { heartbeatInWords } from '../temporal/heartbeats.ts';
import type { Heartbeat } from '../temporal/heartbeats.ts';
import type { Reason } from './why.ts';

/** A reason as a sentence, with what a person can do about it where there is something. */
export function whyInWords(reason: Reason, now: number): string {
  const since = (moment: number | null): string => (moment === null ? '' : ` for ${howLong(now - moment)}`);
  switch (reason.kind) {
    case 'unknown': {
      const { lastStepAt } = reason;
      const at =
        lastStepAt === null ? null : new Date(lastStepAt).toISOString().slice(0, 16).replace('T', ' ');
      return at === null
        ? 'what it waits for is not known, and no step of it is stored'
        : `what it waits for is not known; its last step was stored ${howLong(now - lastStepAt!)} ago, ${at} UTC`;
    }
    case 'question':
      return reason.question === null
        ? 'it waits for a person; which question that is will be known when a worker answers'
        : `it waits for a person: ${reason.question.reason} (${reason.question.answers.map(({ answer }) => answer).join(' | ')})`;
    case 'no-worker': {
      const { queue, serves, count, what, since: begun, lastAsked, sure } = reason;
      const asked =
        lastAsked === null
          ? 'no worker has polled it lately'
          : `its last worker polled ${howLong(now - lastAsked)} ago`;
      const waits =
        count === 0
          ? ''
          : `; ${counted(count, serves === 'workflows' ? 'workflow' : what.join(', '))} wait${count === 1 ? 's' : ''}${since(begun)}`;
      return `${sure ? 'no worker serves' : 'no worker takes anything from'} the queue ${queue} (${serves}): ${asked}${waits}`;
    }
    case 'workflow-fails':
      return `${reason.workflow} cannot be executed, attempt ${reason.attempt}: ${reason.failure ?? 'see the log of the workers'}`;
    case 'retry': {
      const { nextAt, failure, attempt } = reason;
      const next =
        nextAt === null
          ? 'being tried'
          : nextAt > now
            ? `tried next in ${Math.ceil((nextAt - now) / 1000)} s`
            : 'due to be tried';
      return `${many(reason)} failed ${attempt - 1} time${attempt === 2 ? '' : 's'}, ${next}: ${failure}`;
    }
    case 'silent': {
      const { heartbeatAt, heartbeatSeconds, since: begun } = reason;
      const sign =
        heartbeatAt === null
          ? 'never gave a sign of life'
          : `last gave a sign of life ${howLong(now - heartbeatAt)} ago`;
      return `${many(reason)} runs${since(begun)} and ${sign}; after ${heartbeatSeconds} s it is given to another worker`;
    }
    case 'paused':
      return 'it is paused';
    case 'stopping':
      return 'it stops after the step in flight';
    case 'review': {
      const { id, verifier, given, reviewers, deadline } = reason;
      const far =
        given === null
          ? ''
          : `, ${given} of ${reviewers} ${reviewers === 1 ? 'has' : 'have'} answered, open until ${deadline?.slice(0, 16).replace('T', ' ')} UTC`;
      return `people are asked for a verdict${verifier === null ? '' : ` of ${verifier}`}${far}: ${id}`;
    }
    case 'verdicts':
      return reason.verifier === null
        ? `${counted(reason.count, 'verdict')} that others asked for before`
        : `${counted(reason.count, 'verdict')} of ${reason.verifier}`;
    case 'queued':
      return `${many(reason)} waits${since(reason.since)} for a free place on ${reason.queue}`;
    case 'works': {
      const { heartbeatAt, said, since: begun } = reason;
      const sign = heartbeatAt === null ? '' : `, last sign of life ${howLong(now - heartbeatAt)} ago`;
      const far = together(said);
      return `${many(reason)} runs${since(begun)}${sign}${far === '' ? '' : `: ${far}`}`;
    }
    case 'paused-activity':
      return `${reason.activity} of ${reason.workflow} was paused in Temporal`;
    case 'over':
      return `it is over: ${reason.status}${reason.at === null ? '' : `, ${howLong(now - reason.at)} ago`}${reason.failure === null ? '' : `: ${reason.failure}`}`;
    default:
      return 'nothing is in flight just now: it is between two activities, or waits for a clock or a message';
  }
}

const many = ({
  activity,
  workflow,
  count,
}: {
  activity: string;
  workflow: string;
  count: number;
}): string =>
  count === 1 ? `${activity} of ${workflow}` : `${activity} (${count} of them, one of ${workflow})`;

/** Progress adds up; of other things the first one stands for all. */
function together(heartbeats: readonly Heartbeat[]): string {
  const far = heartbeats.filter((one) => one.kind === 'progress');
  const [first] = heartbeats;
  if (first === undefined) return '';
  if (far.length !== heartbeats.length) return heartbeatInWords(first);
  const sum = (of: 'done' | 'total' | 'tokens'): number => far.reduce((all, one) => all + one[of], 0);
  return heartbeatInWords({
    kind: 'progress',
    done: sum('done'),
    total: sum('total'),
    tokens: sum('tokens'),
  });
}
