import { replayStored } from '../activities/replay/replay.ts';
import type { ReplayAnswer, ReplayDependencies, ReplayRequest } from '../activities/replay/replay.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { EnvironmentHost } from '../environments/host/environment-host.ts';
import { ObjectStore } from '../store/objects/object-store.ts';
import { hostOptions } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';

/**
 * Replays or forks an episode in this process, as a rollout worker would play it: users' code runs in hosts of its own.
 * Throws what `replayStored` and `EnvironmentHost.open` throw.
 */
export async function runReplay(
  settings: WorkerSettings,
  request: ReplayRequest,
  options: Pick<ReplayDependencies, 'signal' | 'onProgress'>,
): Promise<ReplayAnswer> {
  const store = ObjectStore.open(settings.store);
  const host = await EnvironmentHost.open(hostOptions(settings));
  try {
    return await replayStored(request, {
      store,
      environments: host.environments,
      createDecoder: () => createDecoder({ threads: settings.decoderThreads }),
      ...options,
    });
  } finally {
    await host.close();
    store.close();
  }
}
