import { Client } from '@temporalio/client';
import { exportByOtlp } from '../runs/metrics/otlp.ts';
import { otlpOf } from '../runs/metrics/otlp-settings.ts';
import { runMetrics } from '../runs/metrics/run-metrics.ts';
import type { WorkerMetrics } from '../runs/metrics/scrape.ts';
import { ObjectStore } from '../store/objects/object-store.ts';
import { Presenter } from '../runs/ladder/presenter.ts';
import { ReplayJobs } from '../runs/replay/jobs.ts';
import { openConnection } from '../runs/temporal/temporal-connection.ts';
import { loadExtensions } from '../workers/load-extensions.ts';
import { inheritedEnvironment } from '../workers/inherited-environment.ts';
import { hostOptions, settingsToEnv } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';
import { keepLittleGarbage } from './heap.ts';
import { serveDashboard } from './server.ts';
import type { Dashboard, DashboardOptions } from './server.ts';

export type OpenOptions = Pick<
  DashboardOptions,
  'host' | 'port' | 'allowedHosts' | 'password' | 'actions'
> & {
  temporalUi: string | null;
  workerMetrics?: readonly WorkerMetrics[];
};

/** The password that the environment asks for; null where it asks for none. */
export const dashboardToken = (): string | null => process.env['GRADUS_DASHBOARD_TOKEN'] || null;

/** A page waits for a store that hangs no longer than a reader does. */
const STORE_TIMEOUT_MS = 4000;

/**
 * The dashboard of servers that need not be there yet: it says so, and shows them when they are. Meant for a process of its
 * own, whose heap it has keep little garbage. Throws as `serveDashboard`.
 */
export async function openDashboard(settings: WorkerSettings, options: OpenOptions): Promise<Dashboard> {
  keepLittleGarbage();
  await loadExtensions(settings.extensionModules);
  const { accessKey, secretKey } = settings.store;
  // What a cache of objects would keep is weights, and readers of thousands of small objects would drive them out.
  const { cacheDir: _, ...where } = settings.store;
  const store = ObjectStore.open({ ...where, timeoutMs: STORE_TIMEOUT_MS, failFast: true });
  const connection = openConnection(settings.temporalAddress);
  const presenter = new Presenter(hostOptions(settings));
  const sources = { store, temporal: new Client({ connection, namespace: settings.namespace }) };
  const exported = exportByOtlp(runMetrics(sources), (text) => console.error(text));
  const secrets = [
    secretKey,
    accessKey,
    options.password ?? '',
    ...Object.values(otlpOf(process.env)?.headers ?? {}),
  ];
  const env = { ...inheritedEnvironment(), ...settingsToEnv(settings) };
  const replays = new ReplayJobs({ env, secrets });
  const close = async (): Promise<void> => {
    await exported?.close();
    await presenter.close();
    await replays.close();
    await connection.close();
    store.close();
  };
  try {
    const served = await serveDashboard({
      ...options,
      sources,
      namespace: settings.namespace,
      presenter,
      replays,
      secrets,
    });
    return {
      url: served.url,
      close: async () => {
        await served.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
