import { createAssessment } from '../../activities/ladder/assessment.ts';
import { createLadder } from '../../activities/ladder/ladder.ts';
import { putVerdict } from '../../activities/verification/verdict-cache.ts';
import { emptyAccount } from '../../core/ladder/budget.ts';
import { noCalibration } from '../../core/ladder/calibration.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import type { LedgerPlace } from '../../core/ladder/requests.ts';
import type { TrainingPorts } from '../../core/ports.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { VerificationSpec } from '../../core/schema/verification.ts';
import type { EvaluationPorts } from '../../core/training/evaluation.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { wishes } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/** What a run's ladder does, as function calls in one process. */
export type PlainLadder = Pick<TrainingPorts, 'escalate'> & Required<Pick<EvaluationPorts, 'verifyAbove'>>;

/**
 * The ladder of a run without workflows: the same plans, verdicts and settlements. Every tier is waited for, has no
 * budget, and is a function in TypeScript.
 */
export function plainLadder(
  { store, environments }: { store: ObjectStore; environments: Environments },
  run: string,
  verification: VerificationSpec,
  signal: AbortSignal,
): PlainLadder {
  const { rungs, learned, offerLateFor } = verification;
  if (offerLateFor > 0 || rungs.some(({ wait, budget }) => !wait || Object.keys(budget).length > 0))
    throw new Error('a plain run waits for every tier, and counts no budgets');
  const ladder = createLadder({ store, environments });
  const assessment = createAssessment({ store, environments });
  let calibrations = rungs.slice(learned ? 0 : 1).map(() => noCalibration());
  let sequence = 0;
  const place = (): LedgerPlace => ({ writer: 'run', sequence: ++sequence });

  /** Computes what is asked, and keeps it where every run finds it. */
  async function compute(asks: BlobRef | null, stage: string): Promise<LedgerEntry[]> {
    if (asks === null) return [];
    const entries: LedgerEntry[] = [];
    for (const { ask } of await store.read(asks, wishes, { signal })) {
      const { verifier, version, digest, subject } = ask.request;
      const environment = environmentOf(environments, ask.environment);
      const heartbeat = (): void => undefined;
      const { usd = 0, ...found } = await environment.find(verifier, subject, { signal, heartbeat });
      const about = { verifier, version, digest };
      const spent = { seconds: 0, usd };
      await putVerdict(store, about, { format: 'gradus.verdict/1', ...about, spent, ...found }, signal);
      entries.push({ kind: 'verdict', stage, ...about, result: found.kind, spent, late: false });
    }
    return entries;
  }

  return {
    async escalate({ stage, step, groups, budgets, reward }) {
      if (Object.keys(budgets).length > 0) throw new Error('a plain run counts no budgets');
      const came = rungs.map((): string[] => []);
      const escalating = (decision: string) => ({
        run,
        decision,
        verification,
        calibrations,
        steps: [{ stage, step, groups }],
        came,
        ledger: place(),
      });
      for (let rung = 1; rung < rungs.length; rung++) {
        for (let more = true, round = 0; more; round++) {
          const plan = await ladder.planClimb(
            {
              ...escalating(`${rung}-${round}`),
              rung,
              again: round > 0,
              budget: {},
              account: emptyAccount(),
              underWay: [],
            },
            signal,
          );
          calibrations = plan.calibrations;
          more = plan.more;
          const entries = await compute(plan.asks, stage);
          came[rung]!.push(...plan.digests);
          await ladder.keepLedger({ run, heard: true, ledger: place(), entries }, signal);
        }
      }
      const settled = await ladder.settleClimb({ ...escalating('settled'), reward }, signal);
      calibrations = settled.calibrations;
      return { ...settled, spans: [] };
    },

    async verifyAbove({ name, step, reward, verification: asked }, groups) {
      const tier = asked!.rungs.find(({ verifier }) => verifier === asked!.evaluateBy)!;
      const request = {
        run,
        stage: name,
        step,
        groups: groups.flatMap(({ trajectories }) => trajectories ?? []),
        rungs: [asked!.rungs[0]!, tier] as [typeof tier, typeof tier],
        reward,
        writer: `evaluation-${++sequence}`,
      };
      const { asks } = await assessment.planAssessment(request, signal);
      await compute(asks, name);
      const judged = await assessment.settleAssessment(request, signal);
      let next = 0;
      return groups.map((group) =>
        group.trajectories === null ? group : { ...judged[next++]!, spans: group.spans },
      );
    },
  };
}
