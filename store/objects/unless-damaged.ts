import { DAMAGE } from '../../core/damage.ts';
import { GradusError, isA } from '../../core/errors.ts';

/**
 * What is read, or null where it is damaged: why is added to `damaged`, so that the rest can be shown. Without that list,
 * and for every other error, it throws what was thrown.
 */
export async function unlessDamaged<T>(
  damaged: string[] | undefined,
  read: () => Promise<T>,
): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (damaged === undefined || !isA(error, GradusError) || !DAMAGE.has(error.type)) throw error;
    if (!damaged.includes(error.message)) damaged.push(error.message);
    return null;
  }
}
