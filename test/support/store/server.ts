import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { ObjectStoreOptions } from '../../../store/objects/object-store.ts';
import { startObjectStore } from '../../../infra/dev/object-store.ts';
import type { ObjectStoreServer } from '../../../infra/dev/object-store.ts';

const BUCKET = 'gradus';

/** A real server on a folder of its own, which can be killed and started again at the same address. */
export class TestServer {
  readonly port: number;
  private readonly directory: string;
  private readonly server: ObjectStoreServer;

  private constructor(directory: string, server: ObjectStoreServer) {
    this.directory = directory;
    this.server = server;
    this.port = server.port;
  }

  static async start({
    directory,
    recordedPort,
  }: { directory?: string; recordedPort?: number } = {}): Promise<TestServer> {
    const folder = directory ?? (await mkdtemp(join(tmpdir(), 'gradus-store-')));
    const server = await startObjectStore({
      dataDir: join(folder, 'store'),
      logFile: join(folder, 'log'),
      recordedPort,
    });
    return new TestServer(folder, server);
  }

  /** Where the bytes of an object lie on the server's disk. */
  fileOf(key: string): string {
    return join(this.directory, 'store', 'objects', BUCKET, key);
  }

  options(more: Partial<ObjectStoreOptions> = {}): ObjectStoreOptions {
    const { endPoint, port, useSSL, accessKey, secretKey } = this.server;
    return { endPoint, port, useSSL, accessKey, secretKey, bucket: BUCKET, ...more };
  }

  connect(more: Partial<ObjectStoreOptions> = {}): Promise<ObjectStore> {
    return ObjectStore.connect(this.options(more));
  }

  /** The variables by which a command finds this store. */
  environment(): NodeJS.ProcessEnv {
    const { endPoint, port, accessKey, secretKey, bucket } = this.options();
    return {
      ...process.env,
      GRADUS_S3_URL: `http://${endPoint}:${port}`,
      GRADUS_S3_ACCESS_KEY: accessKey,
      GRADUS_S3_SECRET_KEY: secretKey,
      GRADUS_S3_BUCKET: bucket,
    };
  }

  /** While `use` goes on it takes connections and answers nothing. */
  async silentWhile<T>(use: () => Promise<T>): Promise<T> {
    process.kill(this.server.pid, 'SIGSTOP');
    try {
      return await use();
    } finally {
      process.kill(this.server.pid, 'SIGCONT');
    }
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    const { pid } = this.server;
    this.server.kill();
    while (isAlive(pid)) await delay(5);
  }

  restart(): Promise<void> {
    return this.server.restart();
  }

  async remove(): Promise<void> {
    await this.server.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  stop(): Promise<void> {
    return this.server.stop();
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
