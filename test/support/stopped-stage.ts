import type { GroupResult, VerifyRequest } from '../../core/requests/verification.ts';
import { stop } from '../../workflows/control/messages.ts';
import { hollowActivities } from './hollow-activities.ts';
import { ladderSpec } from './ladder-installation.ts';
import { startWorkflowLab } from './workflow-lab.ts';
import type { Activities, WorkflowLab } from './workflow-lab.ts';

/** A stage of ten thousand steps, which measures every thousandth; `over` are other fields of it. */
export function longStage(over: object = {}) {
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.5 }], { groupsPerStep: 1 });
  const [warmStart, stage] = spec.stages;
  const graduation = { ...stage.graduation, successAtLeast: 0.5, everySteps: 1000 };
  return {
    ...spec,
    verification: { ...spec.verification, evaluateBy: 'near' },
    stages: [warmStart, { ...stage, maxSteps: 10_000, graduation, ...over }],
  };
}

/**
 * Runs it with hollow activities, for which stages continue as new every few steps, and stops it in the step `stoppedIn`.
 * `judged` is what groups say besides; `others` are activities in the place of hollow ones.
 */
export const startStoppedStageLab = (
  stoppedIn: number,
  judged: (group: VerifyRequest['group']) => Partial<GroupResult>,
  others: (hollow: ReturnType<typeof hollowActivities>) => Activities = () => ({}),
): Promise<WorkflowLab> =>
  startWorkflowLab(
    ({ runs }) => {
      const hollow = hollowActivities(runs);
      const given = others(hollow);
      const verifyGroup = async (request: VerifyRequest): Promise<GroupResult> => {
        const { group } = request;
        if (group.stage === 'rl' && group.step === stoppedIn) {
          await runs.client.workflow.getHandle(group.run).signal(stop);
        }
        return { ...(await hollow.verifier.verifyGroup(request)), ...judged(group) };
      };
      return { ...hollow, ...given, verifier: { ...hollow.verifier, ...given.verifier, verifyGroup } };
    },
    { dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 60 } },
  );
