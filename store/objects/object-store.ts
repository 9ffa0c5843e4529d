import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type * as Minio from 'minio';
import { byteCount } from '../../core/byte-parts.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { BlobRef } from '../../core/refs.ts';
import { ownTurn } from '../../engine/in-pieces.ts';
import { BlobCache } from './blob-cache.ts';
import { parseJson } from '../codec.ts';
import type { Codec } from '../codec.ts';
import { assertDigest, DIGEST_FORM, sha256Hex, sha256OfMany } from '../digest.ts';
import { assertKey } from '../keys.ts';
import { S3Transport } from './s3-transport.ts';
import {
  errorCodeOf,
  isMissing,
  isTransient,
  isTimeout,
  isStoreUnreachable,
  storeError,
} from './store-errors.ts';

// Its ES modules take a quarter of a second to load, for the names that Node looks for in lodash and others.
const { Client } = createRequire(import.meta.url)('minio') as typeof Minio;

export interface ObjectStoreOptions {
  endPoint: string;
  port: number;
  useSSL: boolean;
  accessKey: string;
  secretKey: string;
  bucket: string;
  /** Default `us-east-1`, which servers other than AWS take as well. */
  region?: string;
  /** A folder shared by the processes of this machine; without it every read goes to the server. */
  cacheDir?: string;
  /** Default 4 GiB. */
  cacheBytes?: number;
  /** A request that is silent for so long counts as lost. Default 30 s. */
  timeoutMs?: number;
  /**
   * For whoever looks, and would rather be told than wait: while the server answers nothing, a request that was silent is
   * not made again, and others fail at once.
   */
  failFast?: boolean;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface PutOptions extends CallOptions {
  contentType?: string;
  /** The SHA-256 of the bytes, from a caller that has computed it. */
  sha256?: string;
  /** False for what nobody reads soon, as a rule: then no copy lies in this machine's cache. */
  cached?: boolean;
}

/** What lies at a key, whoever wrote it. */
export interface StoredObject<T> {
  ref: BlobRef;
  value: T;
}

/** The S3 metadata that carries the digest, as `x-amz-meta-sha256`. */
const DIGEST = 'sha256';
const BACKOFF_MS = [100, 400];
/** A store that fails fast does not ask again within this time a server that was found to be away. */
const AWAY_MS = 1000;
const ASK_FIRST_BYTES = 2 ** 16;
/** Parsing it takes milliseconds: several of them do not share a turn of the event loop. */
const LARGE_OBJECT = 2 ** 18;

/**
 * Immutable objects in one bucket of an S3 server. Every method may throw what `storeError` lists; passing faults
 * are tried three times within half a second, and come up as retryable then. An aborted `signal` ends a call with
 * its reason; an object that was being put may be there or not then. One put carries one object, up to S3's 5 GiB.
 */
export class ObjectStore {
  readonly address: string;
  readonly bucket: string;
  private readonly client: Minio.Client;
  private readonly transport: S3Transport;
  private readonly cache: BlobCache | undefined;
  private readonly warned = new Set<string>();
  private readonly failFast: boolean;
  /** When the server last answered anything. By `performance.now()`, like all that follows. */
  private answeredAt = -Infinity;
  private away: { error: unknown; at: number } | null = null;

  private constructor(options: ObjectStoreOptions) {
    this.failFast = options.failFast ?? false;
    const { endPoint, port, useSSL, accessKey, secretKey } = options;
    this.address = `${useSSL ? 'https' : 'http'}://${endPoint}:${port}`;
    this.bucket = options.bucket;
    this.transport = new S3Transport(useSSL, options.timeoutMs ?? 30_000);
    this.client = new Client({
      endPoint,
      port,
      useSSL,
      accessKey,
      secretKey,
      region: options.region ?? 'us-east-1',
      transport: this.transport.transport,
      transportAgent: this.transport.agent,
      retryOptions: { disableRetry: true },
    });
    this.cache =
      options.cacheDir === undefined
        ? undefined
        : new BlobCache(options.cacheDir, options.cacheBytes ?? 4 * 2 ** 30);
  }

  /** For readers: nothing is created and nothing is tried, so nothing is asked of the server before it is needed. */
  static open(options: ObjectStoreOptions): ObjectStore {
    return new ObjectStore(options);
  }

  /**
   * Creates the bucket where there is none, and makes sure that `If-None-Match: *` is obeyed: some servers ignore
   * it, and there two attempts of one step would overwrite each other.
   * Throws GradusError('store', 'unconditional-writes') on such a server.
   */
  static async connect(options: ObjectStoreOptions, call: CallOptions = {}): Promise<ObjectStore> {
    const store = new ObjectStore(options);
    try {
      await store.createBucket(call.signal);
      await store.probe(call.signal);
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  close(): void {
    this.transport.close();
  }

  /**
   * Writes a value unless the key is taken, and returns what is kept there. The first writer wins: whoever comes later
   * gets the value of the one who was first. An attempt that is retried must go on from what an earlier attempt
   * committed, because others may have read it already; so answer from the value that comes back, never from the one
   * that was given. Throws what the codec throws where something else lies there.
   */
  async putIfAbsent<T>(
    key: string,
    codec: Codec<T>,
    value: T,
    options: CallOptions = {},
  ): Promise<StoredObject<T>> {
    assertKey(key);
    const bytes = await codec.encode(value);
    const sha256 = await sha256OfMany(bytes);
    const ref = await this.putOnce(key, [bytes], { ...options, sha256, contentType: codec.contentType });
    // The same bytes say the same, and need not be read.
    return { ref, value: ref.sha256 === sha256 ? value : await this.read(ref, codec, options) };
  }

  /**
   * Writes bytes that may be no others, such as a file of a checkpoint, whole or in parts that lie end to end; what is there
   * already is adopted. `conflict` makes the error for other bytes under that key.
   */
  async putSame(
    key: string,
    content: Uint8Array | readonly Uint8Array[],
    { conflict, sha256: known, ...options }: PutOptions & { conflict: (key: string) => GradusError },
  ): Promise<BlobRef> {
    const parts = content instanceof Uint8Array ? [content] : content;
    const sha256 = known ?? (await sha256OfMany(...parts));
    const ref = await this.putOnce(key, parts, { ...options, sha256 });
    if (ref.sha256 !== sha256) throw conflict(key);
    return ref;
  }

  /** The ref of what is there when an upload, or that of an earlier writer, is done. */
  private async putOnce(
    key: string,
    parts: readonly Uint8Array[],
    {
      contentType = 'application/octet-stream',
      sha256,
      cached = true,
      signal,
    }: PutOptions & { sha256: string },
  ): Promise<BlobRef> {
    assertKey(key);
    // Beside the upload. Whether that goes well does not matter to a cache that knows its contents by their digest.
    const [created] = await Promise.all([
      this.conditionalPut(key, parts, sha256, contentType, signal),
      cached && this.remember(sha256, parts),
    ]);
    const ref = created ? { key, sha256, bytes: byteCount(parts) } : await this.head(key, { signal });
    if (!ref) {
      throw new GradusError(
        'store',
        'unavailable',
        `${key} was there and was deleted at the same moment: try again`,
        { retryable: true },
      );
    }
    return ref;
  }

  /**
   * The bytes of an object, from the cache or the server; length and SHA-256 are those of the ref. They are the
   * caller's own. Throws GradusError('store', 'corrupt-object') when the server has other bytes.
   */
  async get(ref: BlobRef, { signal }: CallOptions = {}): Promise<Uint8Array> {
    assertKey(ref.key);
    assertDigest(ref.sha256);
    const cached = await this.recall(ref.sha256);
    if (cached) return cached;
    const { bytes } = await this.download(ref.key, signal);
    await this.assertWhole(ref.key, bytes, ref);
    await this.remember(ref.sha256, [bytes]);
    return bytes;
  }

  private async assertWhole(
    key: string,
    bytes: Uint8Array,
    expected: { sha256: string; bytes?: number },
  ): Promise<void> {
    const sha256 = await sha256OfMany(bytes);
    if (bytes.length === (expected.bytes ?? bytes.length) && sha256 === expected.sha256) return;
    throw new GradusError(
      'store',
      'corrupt-object',
      `${key} in bucket ${this.bucket} at ${this.address} has ${bytes.length} bytes with SHA-256 ${sha256}, ` +
        `expected ${expected.bytes ?? 'those'} with ${expected.sha256}: it was damaged or replaced. Restore it, or go back to an earlier one`,
    );
  }

  async getJson(ref: BlobRef, options: CallOptions = {}): Promise<Json> {
    const bytes = await this.get(ref, options);
    if (bytes.length > LARGE_OBJECT) await ownTurn();
    return parseJson(bytes, ref.key);
  }

  /** What an object says, checked. */
  async read<T>(ref: BlobRef, codec: Codec<T>, options: CallOptions = {}): Promise<T> {
    const bytes = await this.get(ref, options);
    if (bytes.length > LARGE_OBJECT) await ownTurn();
    return codec.decode(bytes, ref.key);
  }

  /** What is kept at a key; null where nothing is. */
  async find<T>(key: string, codec: Codec<T>, options: CallOptions = {}): Promise<T | null> {
    if (!this.cache) return this.findAtOnce(key, codec, options);
    const ref = await this.head(key, options);
    return ref ? this.read(ref, codec, options) : null;
  }

  /** By one request, where no cache would spare the second one. */
  private async findAtOnce<T>(key: string, codec: Codec<T>, { signal }: CallOptions): Promise<T | null> {
    assertKey(key);
    const found = await this.download(key, signal).catch((error: unknown) => {
      if (error instanceof GradusError && error.type === 'missing-object') return null;
      throw error;
    });
    if (!found) return null;
    const { bytes, digest } = found;
    if (digest !== undefined) await this.assertWhole(key, bytes, { sha256: digest });
    if (bytes.length > LARGE_OBJECT) await ownTurn();
    return codec.decode(bytes, key);
  }

  /** The ref of what lies at a key, or undefined. What other software put there without a digest is read and hashed. */
  async head(key: string, { signal }: CallOptions = {}): Promise<BlobRef | undefined> {
    assertKey(key);
    const found = await this.call(`head ${key}`, signal, () => this.stat(key));
    if (!found) return undefined;
    const given = digestIn(found.metaData[DIGEST]);
    const sha256 = given ?? (await sha256OfMany((await this.download(key, signal)).bytes));
    return { key, sha256, bytes: found.size };
  }

  /** Every object whose key starts with `prefix`, in the order of the keys. */
  async list(prefix: string, options: CallOptions = {}): Promise<{ key: string; bytes: number }[]> {
    const begin = (): { key: string; bytes: number }[] => [];
    const found = await this.fold(prefix, begin, (all, key, bytes) => void all.push({ key, bytes }), options);
    return found.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  }

  /**
   * Adds every object whose key starts with `prefix` to a sum, as the server lists them, and holds none of them. An attempt
   * that fails in the middle `begin`s anew.
   */
  fold<T>(
    prefix: string,
    begin: () => T,
    add: (sum: T, key: string, bytes: number) => void,
    { signal }: CallOptions = {},
  ): Promise<T> {
    return this.call(`list ${prefix}`, signal, async () => {
      const sum = begin();
      for await (const item of this.client.listObjectsV2(this.bucket, prefix, true)) {
        const { name, size } = item as { name?: string; size?: number };
        if (name !== undefined) add(sum, name, size ?? 0);
      }
      return sum;
    });
  }

  /** What lies right in a folder, whose name ends with `/`: objects, and folders, whose names end with `/` as well. */
  listFolder(folder: string, { signal }: CallOptions = {}): Promise<{ keys: string[]; folders: string[] }> {
    return this.call(`list ${folder}`, signal, async () => {
      const found = { keys: [] as string[], folders: [] as string[] };
      for await (const item of this.client.listObjectsV2(this.bucket, folder, false)) {
        const { name, prefix } = item as { name?: string; prefix?: string };
        if (name !== undefined) found.keys.push(name);
        if (prefix !== undefined) found.folders.push(prefix);
      }
      return found;
    });
  }

  /** Deletes what is there of `keys`. Copies in caches stay until they are evicted. */
  async remove(keys: readonly string[], { signal }: CallOptions = {}): Promise<void> {
    keys.forEach(assertKey);
    if (keys.length === 0) return;
    await this.call(`remove ${keys.length} objects, the first ${keys[0]}`, signal, async () => {
      for (const result of await this.client.removeObjects(this.bucket, [...keys])) {
        const failure = result?.Error;
        if (failure && !isMissing({ code: failure.Code })) {
          throw Object.assign(new Error(failure.Message), { code: failure.Code });
        }
      }
    });
  }

  private async createBucket(signal: AbortSignal | undefined): Promise<void> {
    await this.call(`create bucket ${this.bucket}`, signal, async () => {
      if (await this.client.bucketExists(this.bucket)) return;
      try {
        await this.client.makeBucket(this.bucket);
      } catch (error) {
        // Another worker that starts at the same moment made it.
        if (errorCodeOf(error) !== 'BucketAlreadyOwnedByYou') throw error;
      }
    });
  }

  private async probe(signal: AbortSignal | undefined): Promise<void> {
    const key = `probe/${randomUUID()}`;
    const bytes = new TextEncoder().encode('conditional writes?');
    const put = () => this.conditionalPut(key, [bytes], sha256Hex(bytes), 'text/plain', signal);
    await put();
    const second = await put();
    await this.remove([key], { signal });
    if (second) {
      throw new GradusError(
        'store',
        'unconditional-writes',
        `the object store at ${this.address} ignores If-None-Match: *, so attempts of one step could overwrite each other. ` +
          'Use a server with conditional writes: AWS S3, MinIO, versitygw',
      );
    }
  }

  /** False when the key is taken. */
  private conditionalPut(
    key: string,
    parts: readonly Uint8Array[],
    sha256: string,
    contentType: string,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const length = byteCount(parts);
    // A server may refuse a long body by closing the connection in the middle of it, and the refusal is lost then.
    let ask = length > ASK_FIRST_BYTES;
    return this.call(`put ${key}`, signal, async () => {
      if (ask && (await this.stat(key))) return false;
      ask = true;
      const headers = {
        'If-None-Match': '*',
        'Content-Type': contentType,
        'Content-Length': String(length),
        [`x-amz-meta-${DIGEST}`]: sha256,
      };
      const options = { method: 'PUT', bucketName: this.bucket, objectName: key, headers };
      try {
        // Over plain HTTP the digest is part of the signature; over TLS the client signs without it.
        const digest = this.address.startsWith('https') ? '' : sha256;
        const body = parts.length === 1 ? bufferOf(parts[0]!) : Readable.from(parts.map(bufferOf));
        const response = await this.client.makeRequestStreamAsync(options, body, digest, [200], '');
        response.resume();
        return true;
      } catch (error) {
        if (errorCodeOf(error) === 'PreconditionFailed') return false;
        throw error;
      }
    });
  }

  private async stat(key: string): Promise<Minio.BucketItemStat | undefined> {
    try {
      return await this.client.statObject(this.bucket, key);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** The bytes, and their digest as their writer gave it. */
  private download(
    key: string,
    signal: AbortSignal | undefined,
  ): Promise<{ bytes: Uint8Array; digest: string | undefined }> {
    return this.call(`get ${key}`, signal, async () => {
      const body = (await this.client.getObject(this.bucket, key)) as IncomingMessage;
      const digest = digestIn(body.headers[`x-amz-meta-${DIGEST}`]);
      // In one piece from the start: gigabytes that come in chunks and are put together are there twice.
      const length = Number(body.headers['content-length']);
      if (!Number.isSafeInteger(length))
        return { bytes: Buffer.concat((await body.toArray()) as Buffer[]), digest };
      const bytes = Buffer.allocUnsafeSlow(length);
      let at = 0;
      for await (const chunk of body) at += (chunk as Buffer).copy(bytes, at);
      return { bytes: bytes.subarray(0, at), digest };
    });
  }

  private async call<T>(
    doing: string,
    signal: AbortSignal | undefined,
    operation: () => Promise<T>,
  ): Promise<T> {
    const { away, address } = this;
    if (away !== null && this.answeredAt < away.at && performance.now() < away.at + AWAY_MS)
      throw storeError(away.error, { address, doing });
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted();
      const begun = performance.now();
      try {
        const result = await this.transport.within(signal, operation);
        this.answeredAt = performance.now();
        return result;
      } catch (error) {
        signal?.throwIfAborted();
        if (!isStoreUnreachable(error)) this.answeredAt = performance.now();
        const isSilent = isStoreUnreachable(error) && this.answeredAt < begun;
        const wait = this.failFast && isSilent && isTimeout(error) ? undefined : BACKOFF_MS[attempt];
        if (wait === undefined || !isTransient(error)) {
          if (this.failFast && isSilent) this.away = { error, at: performance.now() };
          throw storeError(error, { address, doing });
        }
        const pause = wait * (0.5 + Math.random());
        // Only the signal ends it early, and that is looked at above.
        await delay(pause, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
      }
    }
  }

  private recall(sha256: string): Promise<Buffer | undefined> {
    return this.tryCache('read', (cache) => cache.read(sha256));
  }

  private async remember(sha256: string, parts: readonly Uint8Array[]): Promise<void> {
    await this.tryCache('written', (cache) => cache.write(sha256, parts));
  }

  /** The cache only saves time: a run goes on without it, and says so once. */
  private async tryCache<T>(
    what: string,
    operation: (cache: BlobCache) => Promise<T>,
  ): Promise<T | undefined> {
    if (!this.cache) return undefined;
    try {
      return await operation(this.cache);
    } catch (error) {
      if (!this.warned.has(what)) {
        this.warned.add(what);
        const message = `the local cache of objects could not be ${what}: ${messageOf(error)}`;
        process.emitWarning(message, { code: 'GRADUS_CACHE' });
      }
      return undefined;
    }
  }
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

const digestIn = (metadata: unknown): string | undefined =>
  typeof metadata === 'string' && DIGEST_FORM.test(metadata) ? metadata : undefined;
