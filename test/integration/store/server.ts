import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import getPort from 'get-port';
import { ObjectStore } from '../../../activities/store/object-store.ts';
import type { ObjectStoreOptions } from '../../../activities/store/object-store.ts';
import { requireBinary } from '../../../infra/setup/server-binaries.ts';

export const SECRET = 'test-secret';
export const BUCKET = 'gradus';

/** A versitygw of its own on a folder of its own, which can be killed and started again at the same address. */
export class TestServer {
  readonly directory: string;
  readonly port: number;
  private process: ChildProcess | undefined;

  private constructor(directory: string, port: number) {
    this.directory = directory;
    this.port = port;
  }

  static async start(directory?: string): Promise<TestServer> {
    const server = new TestServer(
      directory ?? (await mkdtemp(join(tmpdir(), 'gradus-store-'))),
      await getPort({ host: '127.0.0.1' }),
    );
    await server.start();
    return server;
  }

  /** Where the bytes of an object lie on the server's disk. */
  fileOf(key: string): string {
    return join(this.directory, 'data', BUCKET, key);
  }

  options(more: Partial<ObjectStoreOptions> = {}): ObjectStoreOptions {
    return {
      endPoint: '127.0.0.1',
      port: this.port,
      useSSL: false,
      accessKey: 'test',
      secretKey: SECRET,
      bucket: BUCKET,
      ...more,
    };
  }

  connect(more: Partial<ObjectStoreOptions> = {}): Promise<ObjectStore> {
    return ObjectStore.connect(this.options(more));
  }

  async start(): Promise<void> {
    const [data, versions] = [join(this.directory, 'data'), join(this.directory, 'versions')];
    await mkdir(data, { recursive: true });
    await mkdir(versions, { recursive: true });
    const address = `127.0.0.1:${this.port}`;
    this.process = spawn(
      await requireBinary('versitygw'),
      ['--port', address, '--health', '/health', 'posix', '--versioning-dir', versions, data],
      {
        env: { ...process.env, ROOT_ACCESS_KEY: 'test', ROOT_SECRET_KEY: SECRET },
        stdio: 'ignore',
      },
    );
    for (;;) {
      if (this.process.exitCode !== null) throw new Error(`versitygw ended with ${this.process.exitCode}`);
      if (await fetch(`http://${address}/health`).then(({ ok }) => ok, () => false)) return; // prettier-ignore
      await delay(20);
    }
  }

  async kill(): Promise<void> {
    const { process } = this;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const ended = once(process, 'exit');
    process.kill('SIGKILL');
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true, force: true });
  }
}
