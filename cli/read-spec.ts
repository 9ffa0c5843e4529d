import { readFile } from 'node:fs/promises';
import { GradusError, messageOf } from '../core/errors.ts';

/** Throws GradusError('spec', 'unreadable'). */
export async function readSpec(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as unknown;
  } catch (cause) {
    throw new GradusError('spec', 'unreadable', `cannot read the spec ${file}: ${messageOf(cause)}`, {
      cause,
    });
  }
}
