/**
 * Counter-based random numbers: every draw is a pure function of a key (where in the run) and a counter (which
 * draw), so a run that is resumed anywhere draws the same numbers. Philox4x32-10 (Salmon et al. 2011, "Parallel
 * random numbers: as easy as 1, 2, 3").
 */
export interface RandomKey {
  readonly k0: number;
  readonly k1: number;
}

/** A key from a path of labels, e.g. `randomKey(seed, 'rl', step, taskIndex, sample)`. FNV-1a into two lanes, then mixed. */
export function randomKey(...path: (string | number)[]): RandomKey {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  for (const part of path) {
    const text = `${typeof part === 'number' ? 'n' : 's'}${part}\u0000`;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      a = Math.imul(a ^ code, 0x01000193);
      b = Math.imul(b ^ (code + 0x7f), 0x85ebca6b);
      b = (b << 13) | (b >>> 19);
    }
  }
  return { k0: mix(a ^ (b >>> 7)), k1: mix(b ^ (a << 11)) };
}

/** A uniform number in [0, 1) with 32 bits of resolution: draw `counter` (an integer below 2^53) of the stream `key`. */
export function uniform(key: RandomKey, counter: number): number {
  return philox(key, counter)[0] / 4294967296;
}

/** A uniform integer in [0, bound). */
export function uniformInt(key: RandomKey, counter: number, bound: number): number {
  return Math.floor(uniform(key, counter) * bound);
}

/** A standard normal number (Box–Muller). */
export function normal(key: RandomKey, counter: number): number {
  const words = philox(key, counter);
  const u = (words[0] + 1) / 4294967297;
  return Math.sqrt(-2 * Math.log(u)) * Math.cos((2 * Math.PI * words[1]) / 4294967296);
}

/** A stream of draws, for code that draws an unknown number of times from one place. */
export class RandomStream {
  private counter = 0;
  private readonly key: RandomKey;

  constructor(...path: (string | number)[]) {
    this.key = randomKey(...path);
  }

  uniform(): number {
    return uniform(this.key, this.counter++);
  }

  /** An integer in [low, high], both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.uniform() * items.length)]!;
  }

  /** A place among weights, as often as its weight says. */
  weighted(weights: readonly number[]): number {
    let at = this.uniform() * weights.reduce((a, b) => a + b, 0);
    for (const [place, weight] of weights.entries()) {
      at -= weight;
      if (at < 0) return place;
    }
    return weights.length - 1;
  }

  /** Fisher–Yates, in place. */
  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [items[i], items[j]] = [items[j]!, items[i]!];
    }
    return items;
  }
}

function mix(x: number): number {
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

function mulHigh(a: number, b: number): number {
  const aHigh = a >>> 16;
  const aLow = a & 0xffff;
  const bHigh = b >>> 16;
  const bLow = b & 0xffff;
  const low = aLow * bLow;
  const middle = aHigh * bLow + (low >>> 16);
  const cross = aLow * bHigh + (middle & 0xffff);
  return (aHigh * bHigh + (middle >>> 16) + (cross >>> 16)) >>> 0;
}

function philox(key: RandomKey, counter: number): Words {
  return philox4x32([counter >>> 0, Math.floor(counter / 4294967296) >>> 0, 0, 0], key);
}

type Words = [number, number, number, number];

/** Ten rounds over a counter of four 32-bit words. */
export function philox4x32(counter: Readonly<Words>, key: RandomKey): Words {
  let [c0, c1, c2, c3] = counter;
  let k0 = key.k0;
  let k1 = key.k1;
  for (let round = 0; round < 10; round++) {
    const high0 = mulHigh(0xd2511f53, c0);
    const low0 = Math.imul(0xd2511f53, c0) >>> 0;
    const high1 = mulHigh(0xcd9e8d57, c2);
    const low1 = Math.imul(0xcd9e8d57, c2) >>> 0;
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0;
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  return [c0, c1, c2, c3];
}
