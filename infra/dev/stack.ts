import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { cacheRoot } from '../cache-dir.ts';
import { tryLock, withLock } from '../setup/file-lock.ts';
import { findBinary, requireBinary } from '../setup/server-binaries.ts';
import { begunWith, findCli, requireTemporal } from '../setup/temporal-server.ts';
import type { TemporalBinary } from '../setup/temporal-server.ts';
import { boundLogs } from './bounded-logs.ts';
import type { ServerHandle } from './managed-server.ts';
import { ensureBucket, S3_PORT, startObjectStore } from './object-store.ts';
import type { ObjectStoreServer } from './object-store.ts';
import { checkExplicitPort } from './ports.ts';
import { stackLock } from './stack-addresses.ts';
import type { ObjectStoreLocation, StackAddresses } from './stack-addresses.ts';
import {
  DEFAULT_STATE_DIR,
  logsDir,
  prepareStateDir,
  readRecord,
  storeDir,
  temporalDir,
  writeRecord,
} from './state-dir.ts';
import { startTemporal, startTemporalUi, TEMPORAL_PORT, UI_PORT } from './temporal.ts';
import type { TemporalServer, TemporalUi } from './temporal.ts';

const BUCKET = 'gradus';
/** Held while ports are chosen and taken; in a folder that other users cannot write to. */
const portsLock = (): string => path.join(cacheRoot(), 'ports.lock');

export interface StackOptions {
  /** These ports or none: an error says when one is taken. Left out, the usual or free ones are chosen. */
  temporalPort?: number;
  uiPort?: number;
  s3Port?: number;
  /** The web interface, where there is one; on unless false. */
  ui?: boolean;
  /** Bring a server back when it ends without having been asked to; on unless false. */
  supervise?: boolean;
  /** Of the Temporal server, beside what it has anyway; for tests. */
  dynamicConfig?: Readonly<Record<string, unknown>>;
  /** Told what happens, in sentences. */
  onEvent?: (text: string) => void;
}

export interface Stack extends StackAddresses {
  stateDir: string;
  temporal: StackAddresses['temporal'] & ServerHandle & { cliPath: string | undefined };
  objectStore: ObjectStoreLocation & ServerHandle;
  /** Undefined when it is off, or not there. */
  ui: ServerHandle | undefined;
  /** Ends all servers; what they hold stays in the state folder. Safe to call twice. */
  stop(): Promise<void>;
}

const logFile = (stateDir: string, name: string) => path.join(logsDir(stateDir), `${name}.log`);

/** Whoever ended a process and starts the next at once finds the old one still ending: it is given this long. */
const ENDING_MS = 3_000;

/** What people look at workflows with. Nothing else needs it, so that its absence stops nobody, and is said. */
async function findTools(
  server: TemporalBinary,
  { ui: wanted = true, onEvent }: StackOptions,
): Promise<{ ui: boolean; cliPath: string | undefined }> {
  const ui = wanted && (server.kind === 'cli' || (await findBinary('temporal-ui')) !== undefined);
  const cliPath = await findCli(server);
  const absent = [...(wanted && !ui ? ['web interface'] : []), ...(cliPath === undefined ? ['CLI'] : [])];
  if (absent.length > 0) {
    onEvent?.(
      `Temporal's ${absent.join(' and ')} ${absent.length > 1 ? 'are' : 'is'} not there: "${commandLine('setup')}" builds what is missing`,
    );
  }
  return { ui, cliPath };
}

async function claim(stateDir: string, onEvent: StackOptions['onEvent']): Promise<() => Promise<void>> {
  const deadline = performance.now() + ENDING_MS;
  for (let waited = false; ; waited = true) {
    const lock = await tryLock(stackLock(stateDir));
    if ('release' in lock) return lock.release;
    if (performance.now() > deadline) {
      throw new GradusError(
        'infra',
        'stack-running',
        `The servers of ${stateDir} are already up, started by process ${lock.heldBy}. ` +
          `"${commandLine(`train SPEC${stateDir === DEFAULT_STATE_DIR ? '' : ` --state-dir ${stateDir}`}`)}" uses them, and so does the Temporal CLI, with the line that that process has ` +
          `printed; or stop it, or choose another folder (--state-dir).`,
      );
    }
    if (!waited)
      onEvent?.(`waiting for process ${lock.heldBy}, which has the servers of ${stateDir}, to end`);
    await delay(50);
  }
}

/**
 * Starts Temporal and an object store with all their data, keys and logs in `stateDir`, or brings them back with what
 * they held, at the same addresses where these are free. They end with this process, whichever way it ends.
 * @throws GradusError infra/stack-running, infra/state-dir, infra/disk-full, infra/binary-missing, infra/port-taken,
 *   infra/server-start
 */
export async function startStack(
  stateDirectory: string = DEFAULT_STATE_DIR,
  options: StackOptions = {},
): Promise<Stack> {
  const stateDir = path.resolve(stateDirectory);
  await prepareStateDir(stateDir);
  // Before anything starts.
  const server = await requireTemporal(begunWith(temporalDir(stateDir)));
  await requireBinary('versitygw');
  const { ui, cliPath } = await findTools(server, options);
  await checkExplicitPort({ ...TEMPORAL_PORT, explicit: options.temporalPort });
  await checkExplicitPort({ ...S3_PORT, explicit: options.s3Port });
  if (ui) await checkExplicitPort({ ...UI_PORT, explicit: options.uiPort });
  const release = await claim(stateDir, options.onEvent);
  const started: ServerHandle[] = [];
  const { onEvent } = options;
  const logs = boundLogs(logsDir(stateDir), { ...(onEvent && { onEvent }) });
  const stopAll = async () => {
    await Promise.all(started.map((server) => server.stop()));
    await logs.stop();
    await release();
  };
  try {
    // Stacks that start at once would choose the same ports, and take each other's servers for their own.
    const { temporal, store, web } = await withLock(
      portsLock(),
      (holder) => options.onEvent?.(`waiting for process ${holder}, which is starting servers`),
      () => startServers(stateDir, { ...options, ui }, started),
    );
    const objectStore = Object.assign(store, { bucket: BUCKET });
    return {
      stateDir,
      temporal: Object.assign(temporal, { cliPath, ...(web && { uiAddress: web.address }) }),
      objectStore,
      ui: web,
      stop: stopAll,
    };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

interface Servers {
  temporal: TemporalServer;
  store: ObjectStoreServer;
  web: TemporalUi | undefined;
}

async function startServers(
  stateDir: string,
  options: StackOptions,
  started: ServerHandle[],
): Promise<Servers> {
  const recorded = await readRecord(stateDir);
  const common = { supervise: options.supervise !== false, onEvent: options.onEvent };
  const note = <T extends ServerHandle>(server: T): T => {
    started.push(server);
    return server;
  };
  // Both attempts are waited for, so that neither goes on starting after the other's failure is reported.
  const [store, temporal] = await Promise.allSettled([
    startObjectStore({
      ...common,
      dataDir: storeDir(stateDir),
      logFile: logFile(stateDir, 'object-store'),
      port: options.s3Port,
      recordedPort: recorded.objectStore?.port,
    }).then(note),
    startTemporal({
      ...common,
      dataDir: temporalDir(stateDir),
      logFile: logFile(stateDir, 'temporal'),
      port: options.temporalPort,
      recorded: recorded.temporal?.ports,
      dynamicConfig: options.dynamicConfig,
      ...(options.ui === true && {
        ui: { port: options.uiPort, recordedPort: recorded.temporal?.ports['ui'] },
      }),
    }).then(note),
  ]);
  if (temporal.status === 'rejected') throw temporal.reason;
  if (store.status === 'rejected') throw store.reason;
  await ensureBucket(store.value, BUCKET);
  const { address, namespace, ports, uiAddress } = temporal.value;
  let web: TemporalUi | undefined;
  if (options.ui === true && uiAddress === undefined) {
    web = note(
      await startTemporalUi({
        ...common,
        dataDir: temporalDir(stateDir),
        logFile: logFile(stateDir, 'temporal-ui'),
        temporal: address,
        port: options.uiPort,
        recordedPort: recorded.temporal?.ports['ui'],
      }),
    );
  }
  const shown = web?.address ?? uiAddress;
  await writeRecord(stateDir, {
    temporal: {
      address,
      namespace,
      ...(shown !== undefined && { uiAddress: shown }),
      ports: { ...ports, ...(web && { ui: web.port }) },
    },
    objectStore: { endPoint: store.value.endPoint, port: store.value.port, bucket: BUCKET },
  });
  return { temporal: temporal.value, store: store.value, web };
}
