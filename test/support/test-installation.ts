import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startInstallation } from '../../cli/stack-with-workers.ts';
import { GradusError } from '../../core/errors.ts';
import type { Installation, InstallationOptions } from '../../cli/stack-with-workers.ts';
import { SAY_MS } from '../../workers/loop-watch.ts';
import { onFreePorts } from './free-ports.ts';
import { RunClient } from './run-client.ts';

export interface TestInstallation extends Installation {
  stateDir: string;
  runs: RunClient;
  /**
   * Ends everything and removes the state folder. Throws when the orchestrator's event loop was kept for too long: other
   * runs' queries and updates wait for it.
   */
  remove(): Promise<void>;
}

/** Of a Temporal server: it deletes what has ended once its queues have moved on, which is every half a minute otherwise. */
export const DELETES_SOON = {
  'history.transferProcessorUpdateAckInterval': '1s',
  'history.visibilityProcessorUpdateAckInterval': '1s',
};

/**
 * What a worker itself says to have been too long. By processor time, of which 40 ms are usual; but a machine whose host
 * is busy counts what it withholds as such: 210 ms were seen where 1.4 s were withheld, and 1.1 s where 11.4 s were.
 */
const LONGEST_BLOCK_MS = SAY_MS;
/** What is added for each millisecond that was withheld: as much as was seen of it. */
const OF_WITHHELD = 0.15;

/**
 * Real servers and workers in a folder of their own. The object store does not take the usual port: a test that has
 * it down for a while must find no neighbour's in its place.
 */
export async function startTestInstallation(options: InstallationOptions = {}): Promise<TestInstallation> {
  const stateDir = options.stateDir ?? (await mkdtemp(path.join(tmpdir(), 'gradus-test-')));
  const env = {
    GRADUS_PAYLOAD_LIMIT: String(64 * 1024),
    // What a test tells workers is mostly for its environments.
    GRADUS_HOST_ENV: Object.keys(options.env ?? {}).join(','),
    ...options.env,
  };
  const installation = await onFreePorts((ports) =>
    startInstallation({ ui: false, ...ports, ...options, env, stateDir }),
  );
  const runs = await RunClient.connect(installation.settings);
  const remove = async (): Promise<void> => {
    await runs.close();
    await installation.workers.stop();
    // To end in order takes the server a second, and nobody reads what it would write.
    installation.stack.temporal.kill();
    await installation.stop();
    await rm(stateDir, { recursive: true, force: true });
    const { busyMs, wallMs } = installation.workers.longestBlock('orchestrator');
    if (busyMs > LONGEST_BLOCK_MS + OF_WITHHELD * (wallMs - busyMs)) {
      throw new GradusError(
        'infra',
        'kept-loop',
        `the orchestrator's event loop was kept for ${wallMs.toFixed(0)} ms, ${busyMs.toFixed(0)} of them by work: ` +
          'what takes long goes in pieces (engine/in-pieces.ts) or into a thread',
      );
    }
  };
  return { ...installation, stateDir, runs, remove };
}
