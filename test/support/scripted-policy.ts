import { GradusError } from '../../core/errors.ts';
import type { Policy, SampleRequest, SampleResult } from '../../engine/policy.ts';

/** A turn to replay: the ids that were sampled, and optionally what the policy does besides. */
export interface RecordedTurn {
  tokens: readonly number[];
  /** Nats; 0 for each token where absent. */
  logprobs?: readonly number[];
  /** What each token was sampled among. */
  kept?: readonly number[][];
}

/**
 * Replays recorded turns, each session from the first one on. A turn is cut where the request says that it must be,
 * and ends where it samples a stop token, as any policy's would. Asked to go on from exactly there, it goes on with the
 * rest. Throws GradusError('policy', 'recording') for a turn
 * that was not recorded.
 */
export class ScriptedPolicy implements Policy {
  /** Everything that was asked, in order; histories copied, because callers go on appending to theirs. */
  readonly requests: SampleRequest[] = [];
  private readonly turns: readonly RecordedTurn[];
  private readonly played = new Map<string, { turns: number; rest: RecordedTurn; from: number }>();

  constructor(turns: readonly RecordedTurn[]) {
    this.turns = turns;
  }

  async sample(request: SampleRequest, signal?: AbortSignal): Promise<SampleResult> {
    signal?.throwIfAborted();
    this.requests.push({ ...request, prefix: [...request.prefix], continuation: [...request.continuation] });
    const before = this.played.get(request.session);
    const goesOn = before && before.rest.tokens.length > 0 && before.from === request.continuation.length;
    const at = (before?.turns ?? 0) - (goesOn ? 1 : 0);
    const turn = goesOn ? before.rest : this.turns[at];
    if (!turn) throw new GradusError('policy', 'recording', `turn ${at + 1} was not recorded`);
    const stop = turn.tokens.findIndex((token) => request.stopTokens.includes(token));
    const whole = stop < 0 ? turn.tokens.length : stop + 1;
    const length = Math.min(whole, request.maxNewTokens);
    this.played.set(request.session, {
      turns: at + 1,
      rest: {
        tokens: turn.tokens.slice(length, whole),
        logprobs: turn.tokens.slice(length, whole).map((_, i) => turn.logprobs?.[length + i] ?? 0),
        ...(turn.kept && { kept: turn.kept.slice(length, whole) }),
      },
      from: request.continuation.length + length,
    });
    return {
      tokens: turn.tokens.slice(0, length),
      samplerLogprobs: turn.tokens.slice(0, length).map((_, i) => turn.logprobs?.[i] ?? 0),
      ...(turn.kept && { kept: turn.kept.slice(0, length) }),
      finish: stop >= 0 && length === whole ? 'stop' : 'length',
    };
  }

  release(session: string): void {
    this.played.delete(session);
  }

  async close(): Promise<void> {
    this.played.clear();
  }
}
