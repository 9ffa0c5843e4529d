import type { FC } from 'hono/jsx';
import { sampledToLearn } from '../../../core/training/figures.ts';
import { total } from '../../../core/training/stage-policy.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { stepAt } from '../../address.ts';
import { Success, NumberCell } from '../../parts/numbers.tsx';
import { Table, numeric } from '../../parts/table.tsx';

/** Steps that a page lists before it is asked for all. */
const LISTED = 30;

export const Steps: FC<{ run: string; steps: readonly StoredStep[] }> = ({ run, steps }) => {
  const listed = steps.slice(-LISTED).toReversed();
  if (listed.length === 0) return <p>No step has ended yet.</p>;
  return (
    <>
      <h2>Steps and their checkpoints</h2>
      <Table
        caption={
          <>
            The newest {listed.length} of {steps.length}. A checkpoint comes from that of the step before, or
            from the one that a decision went back to.
          </>
        }
        columns={[
          'step',
          numeric('reward'),
          'held-out',
          numeric('sampled'),
          numeric('seconds'),
          'checkpoint',
          'decision',
        ]}
      >
        {listed.map((step) => (
          <tr data-item>
            <th scope="row">
              <a href={stepAt({ run, stage: step.stage, step: step.stageStep })}>
                {step.stage} {step.stageStep}
              </a>
            </th>
            <NumberCell
              value={step.rollout?.rewardCount ? step.rollout.rewardSum / step.rollout.rewardCount : null}
            />
            <td>{step.heldOut ? <Success of={total(step.heldOut.arms)} /> : '–'}</td>
            <NumberCell value={step.rollout && sampledToLearn(step)} />
            <NumberCell
              value={Object.values(step.circumstances.seconds).reduce((sum, part) => sum + part, 0)}
            />
            <td>
              <code title={step.checkpoint.weights}>
                {step.checkpoint.step}-{step.checkpoint.weights.slice(0, 12)}
              </code>
            </td>
            <td>{step.decision.kind === 'continue' ? '' : step.decision.kind}</td>
          </tr>
        ))}
      </Table>
    </>
  );
};
