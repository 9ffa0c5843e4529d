import { sleep } from '@temporalio/workflow';
import { stage as trained } from '../../../workflows/index.ts';

/** The stage of today after a wait, which a history without one does not allow. */
export async function stage(...input: Parameters<typeof trained>): ReturnType<typeof trained> {
  await sleep(1);
  return trained(...input);
}
