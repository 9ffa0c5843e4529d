import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { unpackTar } from 'modern-tar';
import type { ParsedTarEntryWithData } from 'modern-tar';
import { z } from 'zod';
import { readUpTo } from '../../../core/byte-parts.ts';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import type { LoraSpec } from '../../../core/schema/lora.ts';
import type { LoraAdapter } from '../../../engine/lora/adapter.ts';
import { adapterShapes } from '../../../engine/lora/adapter-shapes.ts';
import {
  ADAPTER_CONFIG,
  ADAPTER_MODEL,
  readPeftAdapter,
  toPeftConfig,
} from '../../../engine/lora/peft-format.ts';
import { isAway, keyHeaders, retryAfterOf } from '../../rollout/served/connection.ts';
import { lacks } from './capabilities.ts';
import { keyAdvice, patiently } from './client.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

/** Of an adapter with its compression; seconds. */
const SECONDS = 600;
/** Of an archive besides twice the adapter's float32, bytes: names of tensors, and small files. */
const BESIDE = 64 * 2 ** 20;
/** An archive may lie in a store, behind an address that was signed. */
const MOST_REDIRECTIONS = 5;
const REDIRECTIONS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** `tinker://MODEL/sampler_weights/NAME`, or without the part in the middle. */
const PATH = /^tinker:\/\/([^/]+)\/(?:sampler_weights\/)?([^/]+)$/;

/** What an archive says of its adapter; servers leave parts of it out. */
const said = z.object({ r: z.number().optional(), lora_alpha: z.number().optional() });

/**
 * The adapter of a saved sampler, by its archive in PEFT's layout. Throws GradusError('learner', …): `server-away` and
 * `server-answer`, retryable, `server-refused`, also for 404 of what was just saved, `settings` where the adapter is of
 * another rank or alpha than `lora`, and what `readPeftAdapter` throws.
 */
export async function downloadAdapter(
  { url, key, path }: { url: string; key: string | undefined; path: string },
  lora: LoraSpec,
  config: ModelConfig,
  signal: AbortSignal,
): Promise<LoraAdapter> {
  const [, model, name] = PATH.exec(path) ?? [];
  if (model === undefined)
    throw new GradusError('learner', 'server-answer', `${url} calls a saved sampler ${path}`, {
      retryable: true,
    });
  const at = `${url}/api/v1/training_runs/${model}/checkpoints/${name}/archive`;
  const numbers = adapterShapes(config, lora).reduce((sum, [, [rows, columns]]) => sum + rows! * columns!, 0);
  const mostBytes = 2 * 4 * numbers + BESIDE;
  // Looking changes nothing, and what it is of took a step.
  const entries = await patiently(
    async () => unpacked(at, await get(at, key, mostBytes, signal), mostBytes),
    signal,
  );
  const fileOf = (file: string) =>
    entries.find((entry) => entry.header.name.split('/').at(-1) === file)?.data;
  const found = fileOf(ADAPTER_MODEL);
  if (!found)
    throw new GradusError('learner', 'server-answer', `${at} has no ${ADAPTER_MODEL}`, { retryable: true });
  assertSame(fileOf(ADAPTER_CONFIG), lora, url);
  return readPeftAdapter(toPeftConfig(lora, ''), found.slice(), config);
}

/** What is trained at another alpha computes otherwise: TuFT's is `lora_alpha_ratio` times the rank, whatever is asked for. */
function assertSame(configuration: Uint8Array | undefined, { rank, alpha }: LoraSpec, url: string): void {
  if (configuration === undefined) return;
  const { r = rank, lora_alpha: theirs = alpha } = configurationOf(configuration, url);
  if (r !== rank || theirs !== alpha)
    throw lacks(
      `an adapter of rank ${rank} and alpha ${alpha}: ${url} trains one of rank ${r} and alpha ${theirs}`,
      `set the server to alpha ${alpha} at that rank`,
    );
}

function configurationOf(bytes: Uint8Array, url: string): z.output<typeof said> {
  try {
    return said.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'no JSON' : 'none of an adapter';
    throw new GradusError('learner', 'server-answer', `${url}: ${ADAPTER_CONFIG} of an archive is ${why}`, {
      retryable: true,
      cause: error,
    });
  }
}

/** What arrives in part is asked for again; a body that is no archive is an answer of somebody else. */
async function unpacked(
  at: string,
  bytes: Uint8Array,
  maxOutputLength: number,
): Promise<ParsedTarEntryWithData[]> {
  try {
    return await unpackTar(await promisify(gunzip)(bytes, { maxOutputLength }));
  } catch (error) {
    const type = messageOf(error) === 'unexpected end of file' ? 'server-away' : 'server-answer';
    throw new GradusError('learner', type, `${at} is no archive: ${messageOf(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}

async function get(
  at: string,
  key: string | undefined,
  mostBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const within = AbortSignal.any([signal, timeoutSignal(1000 * SECONDS)]);
  let url = new URL(at);
  try {
    for (let redirections = 0; ; redirections++) {
      // The key is for the server alone.
      const headers = url.origin === new URL(at).origin ? keyHeaders(key) : {};
      const response = await fetch(url, { signal: within, headers, redirect: 'manual' });
      const location = response.headers.get('location');
      if (!REDIRECTIONS.has(response.status) || location === null)
        return await bytesOf(response, url, mostBytes);
      await response.body?.cancel();
      if (redirections === MOST_REDIRECTIONS)
        throw refused(url, `redirects more than ${MOST_REDIRECTIONS} times`);
      url = elsewhere(location, url);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof GradusError) throw error;
    throw new GradusError('learner', 'server-away', `${nameOf(url)}: ${messageOf(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}

/** Throws GradusError('learner', 'server-refused') for what no client can fetch. */
function elsewhere(location: string, from: URL): URL {
  const url = URL.canParse(location, from.href) ? new URL(location, from) : null;
  if (url === null) throw refused(from, 'redirects to what is no address');
  if (url.protocol === 'file:')
    throw refused(from, `says that the adapter is at ${location}, on the server's own disk`);
  if (!/^https?:$/.test(url.protocol)) throw refused(from, `redirects to an address of ${url.protocol}`);
  if (url.username !== '' || url.password !== '')
    throw refused(from, 'redirects to an address with a password');
  return url;
}

async function bytesOf(response: Response, url: URL, mostBytes: number): Promise<Uint8Array> {
  const { ok, status, body } = response;
  if (!ok) {
    await body?.cancel();
    if (!isAway(status)) throw refused(url, `answered ${status}`, keyAdvice(status));
    throw new GradusError('learner', 'server-away', `${nameOf(url)} answered ${status}`, {
      retryable: true,
      retryAfterSeconds: retryAfterOf(response.headers.get('retry-after')),
    });
  }
  const bytes = await readUpTo(body, mostBytes);
  if (bytes !== undefined) return bytes;
  throw new GradusError(
    'learner',
    'server-answer',
    `${nameOf(url)} has more than ${Math.ceil(mostBytes / 2 ** 20)} MB, twice what the adapter has`,
    { retryable: true },
  );
}

const refused = (url: URL, what: string, advice = ''): GradusError =>
  new GradusError(
    'learner',
    'server-refused',
    `${nameOf(url)} ${what}: the adapter of each step comes back by this route${advice || '. Start a server that sends it'}`,
  );

/** Without what signs it. */
const nameOf = ({ origin, pathname }: URL): string => `${origin}${pathname}`;
