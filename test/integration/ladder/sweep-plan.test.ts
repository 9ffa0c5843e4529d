import { expect, test } from 'vitest';
import { createSweep } from '../../../activities/ladder/sweep.ts';
import { archiveKey } from '../../../store/keys.ts';
import { wishes } from '../../../store/ladder/ladder-codecs.ts';
import type { WantedVerdict } from '../../../core/ladder/requests.ts';
import { ids } from '../../../core/names.ts';
import { openTestStore } from '../../support/test-store.ts';

const { store } = await openTestStore();

const wish = (verifier: string, seconds: number, value: number): WantedVerdict => ({
  ask: {
    request: {
      format: 'gradus.verify/1',
      verifier,
      version: '1',
      digest: `${value}`.replace('.', '').padStart(64, '0'),
      subject: { value },
    },
    environment: 'molecules',
    cost: { seconds, usd: 0 },
    limits: { timeoutSeconds: 60, heartbeatSeconds: 10, maxAttempts: 5 },
    served: { by: 'queue', queue: 'q' },
  },
  value,
  basis: null,
});

test('a wish that is too dear for a sweep does not stand before those that are not', async () => {
  // As with the README's budget of an hour: an expert is expected to take a day.
  const deferred = [wish('expert', 86_400, 0.9), wish('dft', 1800, 0.8), wish('dft', 1800, 0.7)];
  await store.putIfAbsent(archiveKey('run', 'run', 1), wishes, [...deferred, wish('dft', 1800, 0.6)]);
  const { signal } = new AbortController();
  const planned = await createSweep({ store }).planSweep(
    { run: 'run', budget: { seconds: 3600 }, writer: 'sweep' },
    signal,
  );
  expect(planned.names).toEqual([deferred[1], deferred[2]].map((one) => ids.verdict(one!.ask.request)));
  expect(planned.costs.map(({ seconds }) => seconds)).toEqual([1800, 1800]);
});
