import path from 'node:path';
import { databaseOf } from '../setup/temporal-server.ts';
import { LOOPBACK } from './ports.ts';

const TEMPORAL_SERVICES = ['frontend', 'history', 'matching', 'worker'] as const;

/** One gRPC and one membership port for each of the four services that the server consists of. */
export type TemporalPorts = Record<
  `${(typeof TEMPORAL_SERVICES)[number]}Grpc` | `${(typeof TEMPORAL_SERVICES)[number]}Membership`,
  number
>;

export const TEMPORAL_PORT_NAMES = TEMPORAL_SERVICES.flatMap(
  (service) => [`${service}Grpc`, `${service}Membership`] as const,
);

function sqlite(file: string) {
  return {
    sql: {
      user: '',
      password: '',
      pluginName: 'sqlite',
      databaseName: file,
      connectAddr: 'localhost',
      connectProtocol: 'tcp',
      connectAttributes: {
        mode: 'rwc',
        setup: 'true',
        journal_mode: 'wal',
        // With the write-ahead log this survives any kill of the server; only a power failure can cost the last commits.
        synchronous: '1',
        busy_timeout: '10000',
      },
      maxConns: 1,
      maxIdleConns: 1,
      maxConnLifetime: '1h',
    },
  };
}

/**
 * The server's configuration: SQLite, four shards, everything on loopback, no metrics and no profiling endpoint.
 * With these settings one sequential activity takes 5 to 13 ms, against 98 ms for a development server as it comes.
 */
export function temporalConfig(dataDir: string, ports: TemporalPorts): object {
  const services = TEMPORAL_SERVICES.map((service) => [
    service,
    {
      rpc: {
        grpcPort: ports[`${service}Grpc`],
        membershipPort: ports[`${service}Membership`],
        bindOnIP: LOOPBACK,
      },
    },
  ]);
  const frontend = `${LOOPBACK}:${ports.frontendGrpc}`;
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: 4,
      datastores: {
        default: sqlite(databaseOf(dataDir, 'server')),
        visibility: sqlite(path.join(dataDir, 'visibility.db')),
      },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: LOOPBACK } },
    services: Object.fromEntries(services) as object,
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: frontend },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    dynamicConfigClient: { filepath: path.join(dataDir, 'dynamic-config.yaml'), pollInterval: '60s' },
  };
}

const DYNAMIC_CONFIG: Readonly<Record<string, unknown>> = {
  'history.transferProcessorMaxPollRPS': 500,
  'system.enableActivityEagerExecution': true,
  'system.namespaceCacheRefreshInterval': '500ms',
  'frontend.enableServerVersionCheck': false,
  // A task that is 5 s old is no longer forwarded between the parts of its queue: with several parts and as few pollers
  // as one machine has, it would wait for minutes until a poll happens to reach its part.
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
};

/** The arguments of a Temporal CLI whose development server keeps its data in `dataDir`, with the same settings. */
export function developmentServer(options: {
  dataDir: string;
  port: number;
  /** null: no web interface. */
  uiPort: number | null;
  dynamicConfig: Readonly<Record<string, unknown>>;
}): string[] {
  const settings = Object.entries({ ...DYNAMIC_CONFIG, ...options.dynamicConfig });
  const web = options.uiPort === null ? ['--headless'] : ['--ui-port', String(options.uiPort)];
  const changes = settings.flatMap(([name, value]) => [
    '--dynamic-config-value',
    `${name}=${JSON.stringify(value)}`,
  ]);
  // The pragmas are those of the server above.
  const database = databaseOf(options.dataDir, 'cli');
  const pragmas = ['--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=1'];
  const kept = ['--db-filename', database, ...pragmas];
  const served = ['--log-level', 'warn', '--ip', LOOPBACK, '--port', String(options.port)];
  return ['server', 'start-dev', ...served, ...web, ...kept, ...changes];
}

/** With `changes` to it, for tests of what only happens at the server's limits. */
export function dynamicConfig(changes: Readonly<Record<string, unknown>> = {}): object {
  const entries = Object.entries({ ...DYNAMIC_CONFIG, ...changes });
  return Object.fromEntries(entries.map(([name, value]) => [name, [{ value, constraints: {} }]]));
}

/** The web interface's configuration. */
export function temporalUiConfig(options: { temporal: string; port: number; namespace: string }): object {
  return {
    temporalGrpcAddress: options.temporal,
    host: LOOPBACK,
    port: options.port,
    enableUi: true,
    defaultNamespace: options.namespace,
    disableNewsFetch: true,
    notifyOnNewVersion: false,
    cors: { cookieInsecure: true, allowOrigins: [`http://${LOOPBACK}:${options.port}`] },
  };
}
