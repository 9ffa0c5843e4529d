import type { FC } from 'hono/jsx';
import { HELD_OUT } from '../../../core/names.ts';
import { figuresOf } from '../../../core/training/figures.ts';
import { total } from '../../../core/training/stage-policy.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { shortNumber } from '../../../svg/charts.ts';
import { stepAt } from '../../address.ts';
import { Num, Success, amountText, duration } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';

export const Facts: FC<{ run: string; facts: StoredStep; evaluated: boolean }> = ({
  run,
  facts,
  evaluated,
}) => {
  const { rollout, batch, learner, heldOut, decision, circumstances, alarms } = facts;
  return (
    <>
      <dl class="facts">
        <dt>step of the run</dt>
        <dd>
          {facts.step}; checkpoint{' '}
          <code>
            {facts.checkpoint.step}-{facts.checkpoint.weights.slice(0, 12)}
          </code>
          {facts.backend && `, by ${facts.backend}`}
        </dd>
        {rollout && (
          <>
            <dt>rolled out</dt>
            <dd>
              {amountText(rollout.episodes, 'episode')}, {shortNumber(rollout.sampledTokens)} tokens, mean
              reward{' '}
              <Num value={rollout.rewardCount === 0 ? null : rollout.rewardSum / rollout.rewardCount} />;{' '}
              {Object.entries(rollout.outcomes)
                .filter(([, count]) => count > 0)
                .map(([kind, count]) => `${count} ${kind}`)
                .join(', ')}
            </dd>
          </>
        )}
        {(rollout?.failedGroups.length ?? 0) > 0 && (
          <>
            <dt class="bad">whole groups failed</dt>
            <dd>
              {rollout!.failedGroups.map((reason) => (
                <div>
                  <Text value={reason} max={500} />
                </div>
              ))}
            </dd>
          </>
        )}
        {batch && (
          <>
            <dt>trained on</dt>
            <dd>
              {batch.sequences} sequences, {shortNumber(batch.maskedTokens)} of {shortNumber(batch.tokens)}{' '}
              tokens; {amountText(batch.degenerateGroups, 'group')} without contrast
            </dd>
          </>
        )}
        {heldOut && (
          <>
            <dt>held-out success</dt>
            <dd>
              <Success of={total(heldOut.arms)} />{' '}
              {evaluated && (
                <a href={stepAt({ run, stage: `${facts.stage}${HELD_OUT}`, step: facts.stageStep })}>
                  its episodes
                </a>
              )}
            </dd>
          </>
        )}
        <dt>decision</dt>
        <dd>
          {decision.kind}
          {decision.reason && (
            <>
              {': '}
              <Text value={decision.reason} max={500} />
            </>
          )}
          {decision.question && ` A person was asked, and answered ${facts.answer ?? 'nothing yet'}.`}
        </dd>
        {alarms.length > 0 && (
          <>
            <dt class="bad">alarms</dt>
            <dd>{alarms.map(({ name }) => name).join(', ')}</dd>
          </>
        )}
        <dt>time</dt>
        <dd>
          {Object.entries(circumstances.seconds)
            .filter(([, seconds]) => seconds > 0)
            .map(([part, seconds]) => `${part} ${duration(seconds)}`)
            .join(', ')}
        </dd>
        {circumstances.incidents.length > 0 && (
          <>
            <dt class="warn">incidents</dt>
            <dd>
              {circumstances.incidents.map(({ function: name, kind, count, message }) => (
                <div>
                  <Text value={name} max={200} />: {kind} {count} times: <Text value={message} max={500} />
                </div>
              ))}
            </dd>
          </>
        )}
      </dl>
      <details>
        <summary>Every figure{learner === null ? '' : ', those of the learner included'}</summary>
        <dl class="facts">
          {Object.entries(figuresOf(facts)).map(([name, value]) => (
            <>
              <dt>
                <Text value={name} max={100} />
              </dt>
              <dd>{String(Number(value.toPrecision(6)))}</dd>
            </>
          ))}
        </dl>
      </details>
    </>
  );
};
