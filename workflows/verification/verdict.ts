import {
  ActivityFailure,
  condition,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  proxyActivities,
} from '@temporalio/workflow';
import { LOST } from '../../core/ladder/abstentions.ts';
import type { Arrived, VerdictRequest, StoredVerdict } from '../../core/ladder/requests.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type { TierActivities } from '../../activities/verification/tier.ts';
import { RETRY, verdictActivities } from '../activities.ts';
import { checked } from '../control/refuse.ts';
import { listen } from '../control/listen.ts';
import { name as workflowId } from '../../core/json/shape.ts';
import { askShape } from '../control/message-shapes.ts';
import { verdictArrived } from '../control/messages.ts';

/** By signal-with-start, of the workflow that wants to know. */
const verdictWanted = defineSignal<[string]>('verdictWanted');

/**
 * One computation, for everyone who asks for it: its id names verifier, version and subject. What is known already is
 * told at once. It waits for a worker of its tier as long as that takes, and no slot is held meanwhile.
 */
export async function verdict(input: VerdictRequest): Promise<void> {
  const ask = checked(askShape, input);
  const waiting = new Waiting();
  await condition(() => waiting.all.length > 0);
  const known = await verdictActivities.recallVerdict(ask.request);
  if (known !== null) return waiting.tell(known, null);
  const kept = await verdictActivities.keepVerdict({ request: ask.request, answer: await compute(ask) });
  await waiting.tell(kept.answer, kept);
}

/** Who waits for a verdict, in the order in which they came; the first one is charged with it. */
export class Waiting {
  readonly all: string[] = [];
  /** How many of them have been told, or are just being told: they may ask again. */
  private told = 0;

  constructor() {
    listen(
      verdictWanted,
      workflowId,
      (who) => void (this.all.includes(who, this.told) || this.all.push(who)),
    );
  }

  /** Who joins while others are being told is told as well. */
  async tell(answer: TierAnswer, computed: StoredVerdict | null, by?: 'people'): Promise<void> {
    while (this.told < this.all.length) {
      const i = this.told++;
      const { verifier, version, digest, kind: result } = answer;
      const charged = i === 0 ? computed : null;
      const arrived: Arrived = {
        verifier,
        version,
        digest,
        result,
        ...(answer.kind === 'abstained' && { type: answer.type }),
        spent: charged && charged.answer.spent,
        ...(charged?.lost && { lost: charged.lost }),
        ...(by && { by }),
      };
      try {
        await getExternalWorkflowHandle(this.all[i]!).signal(verdictArrived, arrived);
      } catch (error) {
        if (isCancellation(error)) throw error;
        log.info('who asked for a verdict has ended; it is in the store', {
          who: this.all[i],
          reason: String(error),
        });
      }
    }
  }
}

async function compute({ request, limits, served }: VerdictRequest): Promise<TierAnswer> {
  if (served.by !== 'queue') throw new Error(`${request.verifier} is served by people`);
  const { verifySubject } = proxyActivities<TierActivities>({
    taskQueue: served.queue,
    startToCloseTimeout: limits.timeoutSeconds * 1000,
    heartbeatTimeout: limits.heartbeatSeconds * 1000,
    retry: { ...RETRY, maximumAttempts: limits.maxAttempts },
  });
  try {
    return await verifySubject(request);
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    const { verifier, version, digest } = request;
    const reason = `${limits.maxAttempts} attempt(s) came to nothing; the last: ${error.cause?.message ?? error.message}`;
    // What the lost attempts took, nobody measured; the ledger has how many there were.
    const spent = { seconds: 0, usd: 0 };
    return {
      format: 'gradus.verdict/1',
      verifier,
      version,
      digest,
      spent,
      kind: 'abstained',
      type: LOST,
      reason,
    };
  }
}
