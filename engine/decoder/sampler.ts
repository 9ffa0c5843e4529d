import { MOST_TOP_K } from '../../core/names.ts';
import type { Alternative, AskedAlternatives, SamplingSettings } from '../policy.ts';
import { exponential } from './exponential.ts';

/** A token, with what its log-probability follows from; see `logprobOf`. */
export interface Draw {
  token: number;
  /** (logit of the token − largest logit) / temperature. */
  margin: number;
  /** Σ exp((logit − largest logit) / temperature), over what top-k and top-p after it keep, or without top-k over all. */
  total: number;
  /** Ids that the token was drawn among, ascending: where top-k has cut something, and is at most `MOST_KEPT`. */
  kept?: number[];
}

/** Sums are split into so many lanes, so that vector registers of any width give the same bits. */
const LANES = 8;
/** Of a nucleus with half of the probability one draw in 65,000 is refused so often. */
const MOST_REFUSALS = 16;

/**
 * Draws tokens from logits. All sums are float64 in a fixed order, so a draw is a pure function of its arguments, and
 * the native decoder's sampler (native/sampler.cc), which does the same operations, draws the same bits.
 * Equal logits rank by token id. Top-k cuts first, and top-p counts its probability among what top-k left, as in
 * Hugging Face's logits processors and in vLLM.
 */
export class Sampler {
  private readonly weights: Float64Array;
  private readonly order: Int32Array;
  private readonly vocabSize: number;

  constructor(vocabSize: number) {
    this.vocabSize = vocabSize;
    this.weights = new Float64Array(vocabSize);
    this.order = new Int32Array(vocabSize);
  }

  /** `logits` holds the row [V] from `start` on; `u` is uniform in [0, 1). Greedy draws have log-probability 0. */
  draw(logits: Float32Array, start: number, settings: SamplingSettings, u: number): Draw {
    const { vocabSize } = this;
    const { temperature, topK, topP } = settings;
    let best = 0;
    for (let i = 1; i < vocabSize; i++) if (logits[start + i]! > logits[start + best]!) best = i;
    if (temperature === 0) return { token: best, margin: 0, total: 1 };

    const max = logits[start + best]!;
    const total = this.exponentials(logits, start, max, temperature);
    if (topK === 0 && topP < 1) {
      const token = this.fromNucleus(total, topP, u, best);
      return { token, margin: (logits[start + token]! - max) / temperature, total };
    }
    // The least likely token that is kept, and the mass of all that are.
    let last: number | undefined;
    let kept = total;
    if (topK > 0 && topK < vocabSize) {
      last = this.smallestOfLargest(this.candidates(0), 'count', topK);
      kept = this.massDownTo(last);
    }
    if (topP < 1) {
      const floor = ((1 - topP) * kept) / vocabSize;
      last = this.smallestOfLargest(this.candidates(floor, last), 'mass', topP * kept);
      kept = this.massDownTo(last);
    }
    const token = this.walk(u * kept, last, best);
    const draw = { token, margin: (logits[start + token]! - max) / temperature, total: kept };
    const ids = last === undefined || topK === 0 || topK > MOST_TOP_K ? [] : this.keptDownTo(last);
    return ids.length === 0 ? draw : { ...draw, kept: ids };
  }

  /**
   * The `most` likeliest tokens of the row from `start` on, likeliest first, and `also` those that are none of them. A token
   * without probability is left out.
   */
  likeliest(
    logits: Float32Array,
    start: number,
    temperature: number,
    { most, also = [] }: AskedAlternatives,
  ): Alternative[] {
    const { vocabSize } = this;
    const best: number[] = [];
    for (let i = 0; i < vocabSize; i++) {
      const logit = logits[start + i]!;
      if (most === 0) break;
      if (best.length === most && !(logit > logits[start + best.at(-1)!]!)) continue;
      let at = best.length;
      while (at > 0 && logit > logits[start + best[at - 1]!]!) at--;
      best.splice(at, 0, i);
      if (best.length > most) best.pop();
    }
    const tokens = new Set([...best, ...also]);
    const divisor = temperature === 0 ? 1 : temperature;
    const max = logits.subarray(start, start + vocabSize).reduce((a, b) => Math.max(a, b));
    const total = this.exponentials(logits, start, max, divisor);
    return [...tokens].flatMap((token) => {
      const logprob = logprobOf({ margin: (logits[start + token]! - max) / divisor, total });
      return this.weights[token] === 0 ? [] : [{ token, logprob }];
    });
  }

  /** Writes exp((logit − max) / temperature) into `weights`; gives their sum. */
  private exponentials(logits: Float32Array, start: number, max: number, temperature: number): number {
    const { weights, vocabSize } = this;
    const lanes = new Float64Array(LANES);
    for (let i = 0; i < vocabSize; i++) {
      const weight = exponential((logits[start + i]! - max) / temperature);
      weights[i] = weight;
      lanes[i % LANES]! += weight;
    }
    return sumOf(lanes);
  }

  /**
   * A token of the nucleus (Holtzman et al. 2020): draws from all, and again until what is drawn is among the likeliest
   * that have `topP` of the probability together. Whether it is takes one pass, where finding the nucleus takes many.
   * After some refusals it is found all the same; what is drawn follows the same distribution either way.
   */
  private fromNucleus(total: number, topP: number, u: number, best: number): number {
    const target = topP * total;
    for (let refusals = 0; refusals < MOST_REFUSALS; refusals++) {
      const token = this.walk(nextUniform(u, refusals) * total, undefined, best);
      if (token === best || this.massBefore(token) < target) return token;
    }
    // What lies below this floor sums to less than (1 - topP) · total, so the nucleus never needs it.
    const floor = ((1 - topP) * total) / this.vocabSize;
    const last = this.smallestOfLargest(this.candidates(floor), 'mass', target);
    return this.walk(nextUniform(u, MOST_REFUSALS) * this.massDownTo(last), last, best);
  }

  /** Σ weights of the tokens that rank before this one. */
  private massBefore(token: number): number {
    const { weights, vocabSize } = this;
    const lanes = new Float64Array(LANES);
    for (let i = 0; i < vocabSize; i++) if (this.ranksBefore(i, token)) lanes[i % LANES]! += weights[i]!;
    return sumOf(lanes);
  }

  /** The first kept token, by id, at which the running sum passes `target`; rounding may leave it unreached. */
  private walk(target: number, last: number | undefined, fallback: number): number {
    const { weights, vocabSize } = this;
    let sum = 0;
    let token = fallback;
    for (let i = 0; i < vocabSize; i++) {
      if (weights[i] === 0 || (last !== undefined && this.ranksBefore(last, i))) continue;
      sum += weights[i]!;
      token = i;
      if (target < sum) break;
    }
    return token;
  }

  /** Writes the tokens of at least `floor` that rank no lower than `last` into `order`; gives their number. */
  private candidates(floor: number, last?: number): number {
    const { weights, order, vocabSize } = this;
    let count = 0;
    for (let i = 0; i < vocabSize; i++) {
      if (weights[i]! >= floor && (last === undefined || !this.ranksBefore(last, i))) order[count++] = i;
    }
    return count;
  }

  /** The tokens of any probability that rank no lower than `last`; none where those are all. */
  private keptDownTo(last: number): number[] {
    const { weights, vocabSize } = this;
    const kept: number[] = [];
    let cut = false;
    for (let i = 0; i < vocabSize; i++) {
      if (weights[i] === 0) continue;
      if (this.ranksBefore(last, i)) cut = true;
      else kept.push(i);
    }
    return cut ? kept : [];
  }

  private massDownTo(last: number): number {
    const { weights, vocabSize } = this;
    let sum = 0;
    for (let i = 0; i < vocabSize; i++) if (!this.ranksBefore(last, i)) sum += weights[i]!;
    return sum;
  }

  /**
   * The lowest-ranking member of the smallest set of top-ranking candidates whose measure (their count, or their
   * mass) reaches `target`: quickselect, in time linear in `count` on average.
   */
  private smallestOfLargest(count: number, measure: 'count' | 'mass', target: number): number {
    const { weights, order } = this;
    const of = (token: number) => (measure === 'count' ? 1 : weights[token]!);
    let low = 0;
    let high = count;
    let before = 0;
    let answer = order[0]!;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const pivot = order[middle]!;
      order[middle] = order[high - 1]!;
      order[high - 1] = pivot;
      let split = low;
      let mass = 0;
      for (let i = low; i < high - 1; i++) {
        const token = order[i]!;
        if (!this.ranksBefore(token, pivot)) continue;
        order[i] = order[split]!;
        order[split++] = token;
        mass += of(token);
      }
      order[high - 1] = order[split]!;
      order[split] = pivot;
      if (split > low && before + mass >= target) {
        high = split;
        continue;
      }
      answer = pivot;
      before += mass + of(pivot);
      if (before >= target) break;
      low = split + 1;
    }
    return answer;
  }

  private ranksBefore(a: number, b: number): boolean {
    const difference = this.weights[a]! - this.weights[b]!;
    return difference > 0 || (difference === 0 && a < b);
  }
}

/** Log-probability in nats of a drawn token, among the tokens that `total` is over. */
export const logprobOf = ({ margin, total }: Pick<Draw, 'margin' | 'total'>): number =>
  margin - Math.log(total);

function sumOf(lanes: Float64Array): number {
  const lane = (i: number): number => lanes[i]!;
  return lane(0) + lane(1) + (lane(2) + lane(3)) + (lane(4) + lane(5) + (lane(6) + lane(7)));
}

/** u itself, then further uniform numbers that follow from its 32 bits (the finalizer of MurmurHash3). */
function nextUniform(u: number, index: number): number {
  if (index === 0) return u;
  let x = (Math.floor(u * 4294967296) + Math.imul(index, 0x9e3779b9)) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) >>> 0) / 4294967296;
}
