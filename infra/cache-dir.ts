import { arch, platform } from 'node:os';
import path from 'node:path';
import envPaths from 'env-paths';

/**
 * Where built things are kept, outside the checkout, so that the next clone finds them: `GRADUS_CACHE`, or the
 * operating system's folder for caches.
 */
export function cacheRoot(env: NodeJS.ProcessEnv = process.env): string {
  const chosen = env['GRADUS_CACHE'];
  return chosen ? path.resolve(chosen) : envPaths('gradus', { suffix: '' }).cache;
}

export interface CacheKey {
  name: string;
  version: string;
  /** What else the bytes depend on, such as the Node-API version of an addon. */
  variant?: string;
}

/** The folder of one thing: other versions, systems and processors live beside it. */
export function cacheEntry(root: string, key: CacheKey): string {
  const parts = [key.name, key.version, key.variant, platform(), arch()];
  return path.join(
    root,
    parts
      .filter((part) => part !== undefined)
      .join('-')
      .replaceAll(/[^\w.-]/g, '_'),
  );
}
