import { parseSpec } from '../../spec/parse-spec.ts';
import { noCalibration } from '../../core/ladder/calibration.ts';
import type { RequestVerdicts } from '../../core/ladder/requests.ts';
import { noOutcomes } from '../../core/episode/outcome.ts';
import { noBehaviour } from '../../core/training/behaviour.ts';
import type { BlobRef, CheckpointRef } from '../../core/refs.ts';
import type { TrainRequest } from '../../core/requests/learner.ts';
import type {
  AdvanceResult,
  DueCallsRequest,
  ResumeRequest,
  ResumeResult,
} from '../../core/requests/rollout.ts';
import type { GroupResult, VerifyRequest } from '../../core/requests/verification.ts';
import calculatorWithLadder from './ladder-calculator.ts';
import type { RunClient } from './run-client.ts';
import type { Gate } from './workflow-lab.ts';

// Activities that do no more than the workflows need to go on.

const ref: BlobRef = { key: 'part', sha256: '0'.repeat(64), bytes: 1 };
export const digest = '1'.repeat(64);
const checkpoint = (step: number): CheckpointRef => ({ manifest: ref, weights: digest, step });
const batch = { batch: ref, sequences: 1, tokens: 1, degenerateGroups: 0, spans: [] };
const calibrations = [noCalibration()];

/** Of a step that had no groups. */
export const nothingSettled = () => ({
  calibrations,
  groups: [],
  settled: {},
  offered: [],
  moves: [],
  totals: {},
});

/** As many held-out tasks as the brief spec has for each measurement. */
const HELD_OUT = 8;

/** Of one episode, which succeeded; of so many tasks that were measured, as an evaluation has one sample of each. */
const group = (trials = 1): GroupResult => ({
  trajectories: ref,
  arms: [{ arm: { environment: calculatorWithLadder.name, level: 1 }, successes: trials, trials }],
  outcomes: { ...noOutcomes(), scored: 1 },
  rewardSum: 1,
  rewardCount: 1,
  sampledTokens: 1,
  sampledLogprob: -1,
  turns: 1,
  behaviour: { ...noBehaviour(), episodes: 1 },
  spans: [],
});

const verifyGroup = ({ group: { samples } }: VerifyRequest): GroupResult =>
  group(samples === 1 ? HELD_OUT : 1);

/** A `verifyGroup` that waits in the stage `rl` until the gate of its run is open, where it has one. */
export const verifyHeldUp =
  (gates: ReadonlyMap<string, Gate>) =>
  async (request: VerifyRequest): Promise<GroupResult> => {
    const { run, stage } = request.group;
    if (stage === 'rl') await gates.get(run)?.opened;
    return verifyGroup(request);
  };

/**
 * By worker, for a whole run with the environment of ladder-calculator.ts: each group has one episode with one long call,
 * each step one verdict of `near`, and no learner step changes anything but the number.
 */
export const hollowActivities = ({ client }: RunClient) => ({
  orchestrator: {
    openRun: ({ spec, workflowId }: { spec: unknown; workflowId: string }) =>
      parseSpec(spec, workflowId, new Map([[calculatorWithLadder.name, calculatorWithLadder]])),
    initializeModel: () => checkpoint(0),
    buildDemonstrations: () => batch,
    buildBatch: () => batch,
    applyRetention: () => undefined,
    keepStepFacts: () => undefined,
    keepStepAnswer: () => undefined,
  },
  rollout: {
    advance: (): AdvanceResult => ({ part: ref, pages: [ref], spans: [], incidents: [] }),
    dueCalls: ({ group: { run } }: DueCallsRequest) => [
      {
        task: 0,
        sample: 0,
        environment: calculatorWithLadder.name,
        file: 'none',
        tool: 'slow',
        once: false,
        id: `${run}/call`,
        timeoutSeconds: 10,
        heartbeatSeconds: 10,
        maxAttempts: 1,
      },
    ],
    resume: ({ returned }: ResumeRequest): ResumeResult => ({
      episodes: returned.map(() => ({ part: ref, call: null })),
      spans: [],
      incidents: [],
    }),
    gather: () => ref,
  },
  tool: { callTool: () => ({ observation: ref, spans: [], incidents: [] }) },
  verifier: {
    isRunOver: () => false,
    verifyGroup: verifyGroup as (request: VerifyRequest) => GroupResult | Promise<GroupResult>,
    planAssessment: () => ({ asks: null, count: 0 }),
    settleAssessment: ({ groups }: { groups: BlobRef[] }) => groups.map(() => group()),
    planClimb: () => ({
      calibrations,
      asks: ref,
      digests: [digest],
      verifier: 'near',
      costs: [{ seconds: 1, usd: 0 }],
      more: false,
      totals: {},
    }),
    requestVerdicts: ({ requester }: RequestVerdicts) =>
      client.workflow.getHandle(requester).signal('verdictArrived', {
        verifier: 'near',
        version: '1',
        digest,
        result: 'scored',
        spent: { seconds: 1, usd: 0 },
      }),
    keepLedger: () => undefined,
    settleClimb: ({ steps }: { steps: { groups: BlobRef[] }[] }) => ({
      ...nothingSettled(),
      groups: steps.at(-1)!.groups.map(() => group()),
    }),
  },
  learner: {
    trainStep: ({ step }: TrainRequest) => ({
      checkpoint: checkpoint(step),
      metrics: { loss: 0 },
      backend: 'none',
      spans: [],
    }),
  },
});
