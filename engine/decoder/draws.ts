import type { SamplingSettings } from '../policy.ts';
import { MOST_TOP_K } from '../../core/names.ts';
import { logprobOf } from './sampler.ts';
import type { Draw } from './sampler.ts';

/** What is to be drawn from each slot's logits in a step, and what was drawn; arrays of [slots], read by native code. */
export class Draws {
  /** 1 where a token is drawn; 0 where history is only fed. */
  readonly wanted: Uint8Array;
  readonly temperature: Float64Array;
  readonly topK: Int32Array;
  readonly topP: Float64Array;
  /** Uniform in [0, 1). */
  readonly u: Float64Array;
  readonly token: Int32Array;
  /** (logit of the token − largest logit) / temperature, and what the softmax sums to over the largest. */
  readonly margin: Float64Array;
  readonly total: Float64Array;

  /** [slots, MOST_KEPT]: ids that were drawn among, and how many they are; none where nothing was cut. */
  readonly kept: Int32Array;
  readonly keptCount: Int32Array;

  constructor(slots: number) {
    this.wanted = new Uint8Array(slots);
    this.temperature = new Float64Array(slots);
    this.topK = new Int32Array(slots);
    this.topP = new Float64Array(slots);
    this.u = new Float64Array(slots);
    this.token = new Int32Array(slots);
    this.margin = new Float64Array(slots);
    this.total = new Float64Array(slots);
    this.kept = new Int32Array(slots * MOST_TOP_K);
    this.keptCount = new Int32Array(slots);
  }

  /** Asks for a token of this slot, or for none. */
  ask(slot: number, wanted: { sampling: SamplingSettings; u: number } | undefined): void {
    this.wanted[slot] = wanted === undefined ? 0 : 1;
    if (wanted === undefined) return;
    const { temperature, topK, topP } = wanted.sampling;
    this.temperature[slot] = temperature;
    this.topK[slot] = topK;
    this.topP[slot] = topP;
    this.u[slot] = wanted.u;
  }

  answer(slot: number, { token, margin, total, kept = [] }: Draw): void {
    this.token[slot] = token;
    this.margin[slot] = margin;
    this.total[slot] = total;
    this.kept.set(kept, slot * MOST_TOP_K);
    this.keptCount[slot] = kept.length;
  }

  /** The ids that were drawn among; empty where nothing was cut. */
  keptOf(slot: number): number[] {
    return Array.from(this.kept.subarray(slot * MOST_TOP_K, slot * MOST_TOP_K + this.keptCount[slot]!));
  }

  /** Log-probability in nats of what was drawn. */
  logprob(slot: number): number {
    return logprobOf({ margin: this.margin[slot]!, total: this.total[slot]! });
  }
}
