import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { requireBinary } from '../setup/server-binaries.ts';
import { begunWith, requireTemporal } from '../setup/temporal-server.ts';
import type { TemporalBinary } from '../setup/temporal-server.ts';
import { ManagedServer } from './managed-server.ts';
import type { ServerHandle, SuperviseOptions } from './managed-server.ts';
import { choosePort, LOOPBACK } from './ports.ts';
import { retryOtherPorts } from './retry-ports.ts';
import { ensureNamespace, probeTemporal } from './temporal-namespace.ts';
import {
  developmentServer,
  dynamicConfig,
  TEMPORAL_PORT_NAMES,
  temporalConfig,
  temporalUiConfig,
} from './temporal-config.ts';
import type { TemporalPorts } from './temporal-config.ts';

const DEFAULT_NAMESPACE = 'default';
const USUAL_PORT = 7233;
const USUAL_UI_PORT = 8233;
export const TEMPORAL_PORT = { title: 'the Temporal server', setting: '--temporal-port' };
export const UI_PORT = { title: 'the Temporal UI', setting: '--ui-port' };

export interface TemporalOptions extends SuperviseOptions {
  /** Absolute; holds the database and the configuration. */
  dataDir: string;
  logFile: string;
  /** The frontend's port, this one or none; otherwise the recorded one, 7233, or a free one. */
  port?: number | undefined;
  /** The ports of an earlier start, taken again where free. */
  recorded?: Partial<TemporalPorts> | undefined;
  /** Beside what a server has anyway, by the names of Temporal's dynamic configuration. */
  dynamicConfig?: Readonly<Record<string, unknown>> | undefined;
  /** Of the web interface, where the server brings one; undefined: none. */
  ui?: { port?: number | undefined; recordedPort?: number | undefined } | undefined;
}

export interface TemporalServer extends ServerHandle {
  /** "127.0.0.1:PORT" */
  readonly address: string;
  readonly namespace: string;
  readonly ports: Partial<TemporalPorts> & { ui?: number };
  /** "http://127.0.0.1:PORT" of a web interface that came with it. */
  readonly uiAddress?: string;
}

async function choosePorts(options: TemporalOptions, fresh: boolean): Promise<TemporalPorts> {
  const chosen: [string, number][] = [];
  for (const name of TEMPORAL_PORT_NAMES) {
    const frontend = name === 'frontendGrpc';
    const port = await choosePort({
      ...TEMPORAL_PORT,
      explicit: frontend ? options.port : undefined,
      preferred: [fresh ? undefined : options.recorded?.[name], frontend ? USUAL_PORT : undefined],
    });
    chosen.push([name, port]);
  }
  return Object.fromEntries(chosen) as TemporalPorts;
}

/** Refused in microseconds while nothing listens, where gRPC would back off for seconds. */
function probeTcp(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: LOOPBACK, port });
    socket.once('connect', () => resolve()).once('error', reject);
    socket.once('connect', () => socket.destroy());
  });
}

/**
 * A Temporal server on SQLite, serving the namespace `default` with Gradus's search attributes. It keeps its data in
 * `dataDir`: after a kill the next start goes on from there.
 * @throws GradusError infra/binary-missing, infra/port-taken, infra/server-start
 */
export async function startTemporal(options: TemporalOptions): Promise<TemporalServer> {
  const binary = await requireTemporal(begunWith(options.dataDir));
  options.onEvent?.(sourceOf(binary));
  await mkdir(options.dataDir, { recursive: true });
  return binary.kind === 'cli'
    ? startDevelopmentServer(binary.path, options)
    : startOwn(binary.path, options);
}

/** What serves, and why that. */
function sourceOf({ kind, path: file, from }: TemporalBinary): string {
  const what = kind === 'cli' ? "the development server of Temporal's CLI" : 'the Temporal server';
  const why = {
    override: 'which GRADUS_TEMPORAL_SERVER names',
    cache: 'built by Gradus and kept in its cache',
    path: 'found on PATH, none having been built',
    downloaded: "downloaded from Temporal's releases, none having been built",
  };
  return `Temporal: ${what}, ${why[from]} (${file})`;
}

/** The CLI's development server has its own database, one shard and the web interface. */
function startDevelopmentServer(command: string, options: TemporalOptions): Promise<TemporalServer> {
  const namespace = DEFAULT_NAMESPACE;
  return retryOtherPorts(options.logFile, async (attempt) => {
    const fresh = attempt > 0;
    const port = await choosePort({
      ...TEMPORAL_PORT,
      explicit: options.port,
      preferred: [fresh ? undefined : options.recorded?.frontendGrpc, USUAL_PORT],
    });
    const uiPort =
      options.ui === undefined
        ? null
        : await choosePort({
            ...UI_PORT,
            explicit: options.ui.port,
            preferred: [fresh ? undefined : options.ui.recordedPort, USUAL_UI_PORT],
          });
    const { dataDir, dynamicConfig: changes = {} } = options;
    const address = `${LOOPBACK}:${port}`;
    const server = await ManagedServer.start(
      {
        title: 'the Temporal server',
        command,
        args: developmentServer({ dataDir, port, uiPort, dynamicConfig: changes }),
        logFile: options.logFile,
        probe: async () => {
          await probeTcp(port);
          await probeTemporal(address, namespace);
        },
      },
      options,
    );
    await withNamespace(server, address, namespace);
    return Object.assign(server, {
      address,
      namespace,
      ports: { frontendGrpc: port, ...(uiPort !== null && { ui: uiPort }) },
      ...(uiPort !== null && { uiAddress: `http://${LOOPBACK}:${uiPort}` }),
    });
  });
}

async function withNamespace(server: ServerHandle, address: string, namespace: string): Promise<void> {
  try {
    await ensureNamespace(address, namespace);
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function startOwn(command: string, options: TemporalOptions): Promise<TemporalServer> {
  const namespace = DEFAULT_NAMESPACE;
  return retryOtherPorts(options.logFile, async (attempt) => {
    const ports = await choosePorts(options, attempt > 0);
    const config = path.join(options.dataDir, 'server.yaml');
    // JSON is YAML.
    await writeFile(config, JSON.stringify(temporalConfig(options.dataDir, ports), undefined, 2));
    await writeFile(
      path.join(options.dataDir, 'dynamic-config.yaml'),
      JSON.stringify(dynamicConfig(options.dynamicConfig)),
    );
    const address = `${LOOPBACK}:${ports.frontendGrpc}`;
    const server = await ManagedServer.start(
      {
        title: 'the Temporal server',
        command,
        args: ['--config-file', config, '--allow-no-auth', 'start'],
        env: { TEMPORAL_VERSION_CHECK_DISABLED: '1' },
        logFile: options.logFile,
        probe: async () => {
          await probeTcp(ports.frontendGrpc);
          await probeTemporal(address, namespace);
        },
      },
      options,
    );
    await withNamespace(server, address, namespace);
    return Object.assign(server, { address, namespace, ports });
  });
}

export interface TemporalUiOptions extends SuperviseOptions {
  dataDir: string;
  logFile: string;
  /** Of the Temporal server, "HOST:PORT". */
  temporal: string;
  port?: number | undefined;
  recordedPort?: number | undefined;
}

export interface TemporalUi extends ServerHandle {
  /** "http://127.0.0.1:PORT" */
  readonly address: string;
  readonly port: number;
}

/** Temporal's web interface. Errors as in `startTemporal`. */
export async function startTemporalUi(options: TemporalUiOptions): Promise<TemporalUi> {
  const command = await requireBinary('temporal-ui');
  const configDir = path.join(options.dataDir, 'ui');
  await mkdir(configDir, { recursive: true });
  return retryOtherPorts(options.logFile, async (attempt) => {
    const port = await choosePort({
      ...UI_PORT,
      explicit: options.port,
      preferred: [attempt > 0 ? undefined : options.recordedPort, USUAL_UI_PORT],
    });
    const config = temporalUiConfig({ temporal: options.temporal, port, namespace: DEFAULT_NAMESPACE });
    await writeFile(path.join(configDir, 'gradus.yaml'), JSON.stringify(config, undefined, 2));
    const address = `http://${LOOPBACK}:${port}`;
    const server = await ManagedServer.start(
      {
        title: 'the Temporal UI',
        command,
        args: ['--root', options.dataDir, '--config', 'ui', '--env', 'gradus', 'start'],
        logFile: options.logFile,
        probe: async (signal) => {
          const answer = await fetch(`${address}/healthz`, { signal });
          if (!answer.ok) throw new Error(`HTTP status ${answer.status}`);
        },
      },
      options,
    );
    return Object.assign(server, { address, port });
  });
}
