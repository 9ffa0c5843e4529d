import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { DONE } from '../../support/ended.ts';

const MODULE = path.resolve('test/support/hostile-environments.ts');

let installation: TestInstallation;
let store: ObjectStore;

beforeAll(async () => {
  installation = await startTestInstallation({
    env: { GRADUS_ENVIRONMENTS: MODULE, GRADUS_DECODER_THREADS: '1', GRADUS_LEARNER_THREADS: '1' },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
});

/** Outcomes of the unlucky group and of the others, what `progress` says, and whether a worker was replaced. */
async function ran(kind: string) {
  const { runs, workers } = installation;
  const pids = () => [workers.pid('rollout'), workers.pid('tool')];
  const before = pids();
  const handle = await runs.start(kind, briefSpec({ environment: `hostile-${kind}`, maxSteps: 1 }));
  const { end } = await handle.result();
  const { incidents } = await handle.query<Progress>('progress');
  const keys = (await store.list(rolloutsPrefix(kind, 'rl'))).map(({ key }) => key).toSorted();
  expect(keys).toHaveLength(4);
  const outcomes = await Promise.all(
    keys.map(async (key) => {
      const { episodes } = await loadTrajectories(store, (await store.head(key))!);
      return episodes.map(({ outcome }) => outcome!);
    }),
  );
  expect(pids()).toEqual(before);
  return { end, incidents, unlucky: outcomes[0]!, others: outcomes.slice(1).flat() };
}

test.each(['exit', 'long-exit'])(
  'a tool that does %s fails its own episodes and no other, no worker dies, and progress names it',
  async (kind) => {
    const { end, incidents, unlucky, others } = await ran(kind);
    expect(end).toEqual(DONE);
    const failed = unlucky.filter((outcome) => outcome.kind === 'failed');
    expect(failed.length).toBeGreaterThan(0);
    for (const outcome of failed) expect(outcome).toMatchObject({ boundary: 'tool' });
    expect(others.filter((outcome) => outcome.kind === 'failed')).toEqual([]);
    expect(incidents).toEqual([
      expect.objectContaining({
        environment: `hostile-${kind}`,
        file: MODULE,
        function: 'tool calculator',
        kind: 'crashed',
      }),
    ]);
  },
  300_000,
);
