import type { FC } from 'hono/jsx';
import { alarmText } from '../../../core/diagnosis/alarm.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { stepAt } from '../../address.ts';
import { Text } from '../../parts/text.tsx';

/** Of what has happened that is seen at once, and behind it. */
const MOST_NOTABLE = 6;
const MOST_BEFORE = 500;

/** Decisions, questions with their answers, and alarms, the newest first. */
export const Happened: FC<{ run: string; steps: readonly StoredStep[] }> = ({ run, steps }) => {
  const notable = steps.filter(({ alarms, decision }) => alarms.length > 0 || decision.kind !== 'continue');
  const before = notable.slice(0, -MOST_NOTABLE);
  if (notable.length === 0) return null;
  return (
    <>
      <h2>Decisions and alarms</h2>
      <HappenedIn run={run} steps={notable.slice(-MOST_NOTABLE).toReversed()} />
      {notable.length > MOST_NOTABLE && (
        <details>
          <summary>Earlier ones</summary>
          {before.length > MOST_BEFORE && (
            <p>
              The last {MOST_BEFORE} of {before.length} steps.
            </p>
          )}
          <HappenedIn run={run} steps={before.slice(-MOST_BEFORE).toReversed()} />
        </details>
      )}
    </>
  );
};

const HappenedIn: FC<{ run: string; steps: readonly StoredStep[] }> = ({ run, steps }) => (
  <ul class="events">
    {steps.map((step) => (
      <li>
        <a href={stepAt({ run, stage: step.stage, step: step.stageStep })}>
          {step.stage} {step.stageStep}
        </a>
        {step.decision.kind !== 'continue' && (
          <>
            {': '}
            <strong>{step.decision.kind}</strong> <Text value={step.decision.reason ?? ''} max={500} />
            {step.decision.question &&
              (step.answer === null
                ? ' – a person is asked'
                : ` – a person was asked, and answered ${step.answer}`)}
          </>
        )}
        {step.alarms.map(({ actions, ...alarm }) => (
          <div>
            <strong class="bad">alarm</strong> <Text value={alarmText(alarm)} max={2000} />
            {actions.length > 0 && ` Done: ${actions.join(', ')}.`}
          </div>
        ))}
      </li>
    ))}
  </ul>
);
