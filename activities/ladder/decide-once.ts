import type { LadderRequest } from '../../core/ladder/requests.ts';
import type { Codec } from '../../store/codec.ts';
import { decisionKey, stepDecisionKey } from '../../store/keys.ts';
import type { Decided } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/**
 * What a decision of a step was when it was first kept: by an attempt before this one, or by another ladder of the run, where
 * the run is done again. It is decided only where nothing is kept.
 */
export async function decideOnce<T extends Decided>(
  store: ObjectStore,
  { run, steps, ledger, decision }: LadderRequest,
  codec: Codec<T>,
  signal: AbortSignal,
  decide: () => Promise<T>,
): Promise<T> {
  const { stage, step } = steps.at(-1)!;
  const key =
    decision === undefined
      ? decisionKey(run, ledger.writer, ledger.sequence)
      : stepDecisionKey(run, stage, step, decision);
  const before = await store.find(key, codec, { signal });
  if (before !== null) return before;
  const decided = { ...(await decide()), ledger };
  return (await store.putIfAbsent(key, codec, decided, { signal })).value;
}
