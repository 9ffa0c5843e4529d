import type { LocalPolicy } from '../../../engine/policy.ts';

/**
 * Which weights a prompt's first block was computed by. Real servers keep keys and values by the block, and find them
 * again by its tokens, its salt, and the adapter's name and path: never by the weights. So a prompt that is found goes
 * on with what older weights computed, unless somebody emptied the cache. Here a prompt that is found is answered by the
 * older weights altogether, where a real server mixes the two.
 */
export class PrefixCache {
  private readonly computedBy = new Map<string, LocalPolicy>();
  private readonly blockSize: number;

  constructor(blockSize: number) {
    this.blockSize = blockSize;
  }

  /** What answers this prompt, where `current` would if nothing were kept. */
  find(
    prompt: readonly number[],
    { adapter = '', salt = '' }: { adapter?: string; salt?: string },
    current: LocalPolicy,
  ): LocalPolicy {
    // The last token is always computed, so a prompt of one block alone is not found.
    if (prompt.length <= this.blockSize) return current;
    const key = JSON.stringify([adapter, salt, ...prompt.slice(0, this.blockSize)]);
    const known = this.computedBy.get(key);
    if (known === undefined) this.computedBy.set(key, current);
    return known ?? current;
  }

  holds(decoder: LocalPolicy): boolean {
    return [...this.computedBy.values()].includes(decoder);
  }

  clear(): void {
    this.computedBy.clear();
  }
}
