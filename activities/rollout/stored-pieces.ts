import type { RecordingPolicySpec } from '../../core/schema/policy.ts';
import type { OpenGroup } from '../../core/requests/rollout.ts';
import type { Policy, SampleRequest, SampleResult } from '../../engine/policy.ts';
import { partKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { sampledPieces } from '../../store/rollout/sampled-pieces.ts';
import type { SampledPiece } from '../../store/rollout/sampled-pieces.ts';

/**
 * A policy that cannot repeat what it sampled: each piece is stored before anybody uses it, under its episode and its
 * place in it, and the first that is stored counts. So another attempt at the episode takes the same tokens. Of a recorded
 * policy the pieces are those of the run that it names.
 */
export function storingPieces(
  store: ObjectStore,
  spec: RecordingPolicySpec,
  { run, stage, step, group }: OpenGroup,
  episode: number,
  policy: Policy,
): Policy {
  const most = spec.kind === 'http' ? spec.requestTokens : Number.POSITIVE_INFINITY;

  async function piece(request: SampleRequest, signal?: AbortSignal): Promise<SampledPiece> {
    const name = `sampled-${episode}-${request.continuation.length}`;
    const from = spec.kind === 'recorded' ? spec.run : run;
    const stored = await store.find(partKey(from, stage, step, group, name), sampledPieces, { signal });
    if (stored !== null) return stored;
    const sampled = await policy.sample(request, signal);
    const kept = await store.putIfAbsent(partKey(run, stage, step, group, name), sampledPieces, sampled, {
      signal,
    });
    return kept.value;
  }

  return {
    sample: async (request, signal): Promise<SampleResult> => {
      const tokens: number[] = [];
      const samplerLogprobs: number[] = [];
      for (;;) {
        const left = request.maxNewTokens - tokens.length;
        const one = await piece(
          {
            ...request,
            continuation: [...request.continuation, ...tokens],
            ...(request.mask && { mask: [...request.mask, ...tokens.map(() => 1)] }),
            maxNewTokens: Math.min(most, left),
          },
          signal,
        );
        tokens.push(...one.tokens);
        samplerLogprobs.push(...one.samplerLogprobs);
        const full = tokens.length >= request.maxNewTokens || one.tokens.length === 0;
        if (one.finish === 'stop' || full) return { tokens, samplerLogprobs, finish: one.finish };
      }
    },
    release: (session) => policy.release(session),
    close: () => policy.close(),
  };
}
