import { Client } from '@temporalio/client';
import { afterAll, beforeAll } from 'vitest';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import { plainRun } from '../../support/plain-run.ts';
import { createApp } from '../../../dashboard/app.tsx';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { builtInEnvironments } from '../../../environments/families/index.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { ReplayJobs } from '../../../runs/replay/jobs.ts';
import { openConnection } from '../../../runs/temporal/temporal-connection.ts';
import { Presenter } from '../../../runs/ladder/presenter.ts';
import { assertOutput } from '../../support/json-output.ts';
import { ROOT } from '../../support/markdown.ts';
import { openTestStore } from '../../support/test-store.ts';

/** Real runs without Temporal, for tests of what is read of them afterwards: call it at the top of a file. */
export async function openPlainRuns() {
  const { server, store } = await openTestStore();
  const policies = new PolicyPool(store, () => createDecoder({ threads: 1 }));
  const environments = inThisProcess(builtInEnvironments);
  let learner: Learner;
  beforeAll(async () => {
    learner = await createLocalLearner();
  });
  afterAll(async () => {
    await learner.close();
    await policies.close();
  });
  /** `through` stands between the run and its learner. */
  const train = (run: string, spec: unknown, through: (learner: Learner) => Learner = (one) => one) =>
    plainRun(spec, { store, environments, policies, learner: through(learner), run });
  /** A command of the terminal, with a store, and with nothing where Temporal would be. */
  const gradus = async (
    ...args: string[]
  ): Promise<{ code: number | null; stdout: string; stderr: string }> => {
    const env = { ...server.environment(), TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const command = ['--import', 'tsx', 'cli/gradus.ts', ...args];
    const done = await runCommand(process.execPath, command, { env, cwd: ROOT });
    if (args.includes('--json')) assertOutput(args, done.stdout);
    return done;
  };
  return { store, train, gradus, policies, environments };
}

/** Asks pages for what they have of a store, with no Temporal server at hand. */
export function pagesOf(
  store: ObjectStore,
  nowhere = '127.0.0.1:1',
): (path: string, headers?: Record<string, string>) => Promise<{ status: number; text: string }> {
  const temporal = new Client({ connection: openConnection(nowhere) });
  const app = createApp(
    {
      sources: { store, temporal },
      temporalUi: null,
      namespace: 'default',
      actions: false,
      formToken: 'a token',
      presenter: new Presenter({ modules: [] }),
      replays: new ReplayJobs({ env: {} }),
      secrets: [],
    },
    { hosts: new Set(['localhost']), password: null },
  );
  return async (path, headers = {}) => {
    const response = await app.request(path, { headers: { host: 'localhost', ...headers } });
    return { status: response.status, text: textIn(await response.text()) };
  };
}

/** What is read of a page, without its tags. */
const textIn = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll(/\s+/g, ' ');
