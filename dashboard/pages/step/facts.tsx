import type { FC } from 'hono/jsx';
import { HELD_OUT } from '../../../core/names.ts';
import { criterionInWords } from '../../../core/training/enough.ts';
import { figuresOf } from '../../../core/training/figures.ts';
import { scoreAgainst } from '../../../core/training/league.ts';
import type { LeagueRecord } from '../../../core/training/league.ts';
import { total } from '../../../core/training/stage-policy.ts';
import type { LabelFacts } from '../../../core/training/step-facts.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { shortNumber } from '../../../svg/charts.ts';
import { stepAt } from '../../address.ts';
import { Num, Success, amountText, countText, duration } from '../../parts/numbers.tsx';
import { Fact } from '../../parts/fact.tsx';
import { Text } from '../../parts/text.tsx';

export const Facts: FC<{ run: string; facts: StoredStep; evaluated: boolean }> = ({
  run,
  facts,
  evaluated,
}) => {
  const { rollout, batch, learner, heldOut, decision, circumstances, alarms } = facts;
  const figures = figuresOf(facts);
  return (
    <>
      <dl class="facts">
        <Fact term="step of the run">
          {facts.step}; checkpoint{' '}
          <code>
            {facts.checkpoint.step}-{facts.checkpoint.weights.slice(0, 12)}
          </code>
          {facts.backend && `, by ${facts.backend}`}
        </Fact>
        {rollout && (
          <Fact term="rolled out">
            {amountText(rollout.episodes, 'episode')}, {shortNumber(rollout.sampledTokens)} tokens, mean
            reward <Num value={rollout.rewardCount === 0 ? null : rollout.rewardSum / rollout.rewardCount} />;{' '}
            {Object.entries(rollout.outcomes)
              .filter(([, count]) => count > 0)
              .map(([kind, count]) => `${count} ${kind}`)
              .join(', ')}
          </Fact>
        )}
        {rollout?.hinted && (
          <Fact term="with a hint">
            <Success of={rollout.hinted} /> solved
          </Fact>
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
        {figures['staleness/mean'] !== undefined && (
          <Fact term="staleness">
            {shortNumber(figures['staleness/mean'])} learner steps in the mean,{' '}
            {shortNumber(figures['staleness/most']!)} at most
          </Fact>
        )}
        {rollout?.selfPlay && (
          <Fact term="self-play">
            {amountText(rollout.selfPlay.proposals, 'proposal')}: {rollout.selfPlay.made} valid,{' '}
            {rollout.selfPlay.repeated} of them repeated; {rollout.selfPlay.known} known before,{' '}
            {rollout.selfPlay.invalid} invalid, {rollout.selfPlay.malformed} malformed,{' '}
            {rollout.selfPlay.setAside} set aside. New tasks were solved <Success of={rollout.selfPlay} />;{' '}
            {amountText(rollout.selfPlay.kept, 'task')} kept
            {rollout.selfPlay.opponent && `; the opponent was that of ${rollout.selfPlay.opponent}`}
          </Fact>
        )}
        {facts.league && <Fact term="score against">{leagueText(facts.league)}</Fact>}
        {rollout?.selfPlay?.labels && <Labels of={rollout.selfPlay.labels} />}
        {rollout?.fromFailures && (
          <Fact term="tasks from failures">
            {rollout.fromFailures.kept} kept of {amountText(rollout.fromFailures.variations, 'variation')} of{' '}
            {amountText(rollout.fromFailures.failed, 'failed task')}
          </Fact>
        )}
        {facts.synthesis && (
          <Fact term="synthesis">
            {amountText(facts.synthesis.first, 'first action')}, {amountText(facts.synthesis.plans, 'plan')}{' '}
            and {amountText(facts.synthesis.choices, 'choice')} of {amountText(facts.synthesis.tasks, 'task')}
          </Fact>
        )}
        {batch && (
          <Fact term="trained on">
            {batch.sequences} sequences, {countText(batch.maskedTokens)} of {countText(batch.tokens)} tokens;{' '}
            {amountText(batch.degenerateGroups, 'group')} without contrast
          </Fact>
        )}
        {heldOut && (
          <Fact term="held-out success">
            <Success of={total(heldOut.arms)} />{' '}
            {evaluated && (
              <a href={stepAt({ run, stage: `${facts.stage}${HELD_OUT}`, step: facts.stageStep })}>
                its episodes
              </a>
            )}
          </Fact>
        )}
        {facts.criteria && (
          <Fact term="enough">
            {facts.criteria.map((criterion) => (
              <div>
                {criterion.met ? 'met' : 'not met'}: {criterionInWords(criterion)}
              </div>
            ))}
          </Fact>
        )}
        <Fact term="decision">
          {decision.kind}
          {decision.reason && (
            <>
              {': '}
              <Text value={decision.reason} max={500} />
            </>
          )}
          {decision.question && ` A person was asked, and answered ${facts.answer ?? 'nothing yet'}.`}
        </Fact>
        {alarms.length > 0 && (
          <>
            <dt class="bad">alarms</dt>
            <dd>{alarms.map(({ name }) => name).join(', ')}</dd>
          </>
        )}
        <Fact term="time">
          {Object.entries(circumstances.seconds)
            .filter(([, seconds]) => seconds > 0)
            .map(([part, seconds]) => `${part} ${duration(seconds)}`)
            .join(', ')}
        </Fact>
        {circumstances.idle && (
          <Fact term="without work">
            rollout {duration(circumstances.idle.rollout)}, learner {duration(circumstances.idle.learner)}
            {(circumstances.waitedForOldest ?? 0) > 0 &&
              `; ${duration(circumstances.waitedForOldest!)} for the oldest group, while enough others had ended`}
          </Fact>
        )}
        {circumstances.incidents.length > 0 && (
          <Fact term="incidents" warn>
            {circumstances.incidents.map(({ function: name, kind, count, message }) => (
              <div>
                <Text value={name} max={200} />: {kind} {count} times: <Text value={message} max={500} />
              </div>
            ))}
          </Fact>
        )}
      </dl>
      <details>
        <summary>Every figure{learner === null ? '' : ', those of the learner included'}</summary>
        <dl class="facts">
          {Object.entries(figures).map(([name, value]) => (
            <Fact
              term={
                <>
                  <Text value={name} max={100} />
                </>
              }
            >
              {String(Number(value.toPrecision(6)))}
            </Fact>
          ))}
        </dl>
      </details>
    </>
  );
};

/** What the solver's own votes came to. */
const leagueText = (league: LeagueRecord): string =>
  Object.entries(league)
    .map(([opponent, record]) => `${opponent} ${shortNumber(scoreAgainst(record))}`)
    .join(', ');

const Labels: FC<{ of: LabelFacts }> = ({
  of: { tasks, learnt: trained, tooHard, tooEasy, undecided, tooFew, ...labels },
}) => (
  <Fact term="labels of the majority">
    right <Success of={{ successes: labels.right, trials: labels.checked }} />; of {amountText(tasks, 'task')}{' '}
    {trained} trained on, {tooHard} too hard, {tooEasy} too easy, {undecided} undecided, {tooFew} with too few
    answers
  </Fact>
);
