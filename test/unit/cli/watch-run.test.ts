import type { WorkflowHandle } from '@temporalio/client';
import { expect, test } from 'vitest';
import { watchProgress } from '../../../cli/watch-run.ts';
import type { curriculum } from '../../../workflows/curriculum/curriculum.ts';

test('who has seen enough is not kept waiting by a server that does not answer', async () => {
  let asked!: () => void;
  const wasAsked = new Promise<void>((resolve) => (asked = resolve));
  // As a patient call while the server is away.
  const query = () => {
    asked();
    return new Promise<never>(() => undefined);
  };
  const watching = new AbortController();
  const watched = watchProgress(
    { query } as unknown as WorkflowHandle<typeof curriculum>,
    () => undefined,
    watching.signal,
  );
  await wasAsked;
  watching.abort();
  await expect(watched).resolves.toBeUndefined();
});
