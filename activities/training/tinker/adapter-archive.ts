import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { unpackTar } from 'modern-tar';
import type { ParsedTarEntryWithData } from 'modern-tar';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import type { LoraSpec } from '../../../core/schema/lora.ts';
import type { LoraAdapter } from '../../../engine/lora/adapter.ts';
import { isAway, keyHeaders, retryAfterOf } from '../../rollout/served/connection.ts';
import { patiently } from './client.ts';
import { ADAPTER_MODEL, readPeftAdapter, toPeftConfig } from '../../../engine/lora/peft-format.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

/** Of an adapter with its compression; seconds. */
const SECONDS = 600;

/** `tinker://MODEL/sampler_weights/NAME`, or without the part in the middle. */
const PATH = /^tinker:\/\/([^/]+)\/(?:sampler_weights\/)?([^/]+)$/;

/**
 * The adapter of a saved sampler, by its archive in PEFT's layout. Its matrices are read, and what they mean is said by
 * `lora`: the archive's own configuration leaves it out. Throws GradusError('learner', …): `server-away` and
 * `server-answer`, retryable, `server-refused`, also for 404 of what was just saved, and what `readPeftAdapter` throws.
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
  // Looking changes nothing, and what it is of took a step.
  const entries = await patiently(async () => unpacked(at, await get(at, key, signal)), signal);
  const found = entries.find((entry) => entry.header.name.split('/').at(-1) === ADAPTER_MODEL);
  if (!found?.data)
    throw new GradusError('learner', 'server-answer', `${at} has no ${ADAPTER_MODEL}`, { retryable: true });
  return readPeftAdapter(toPeftConfig(lora, ''), found.data.slice(), config);
}

/** What arrives in part is asked for again; a body that is no archive is an answer of somebody else. */
async function unpacked(at: string, bytes: Uint8Array): Promise<ParsedTarEntryWithData[]> {
  try {
    return await unpackTar(await promisify(gunzip)(bytes));
  } catch (error) {
    const type = messageOf(error) === 'unexpected end of file' ? 'server-away' : 'server-answer';
    throw new GradusError('learner', type, `${at} is no archive: ${messageOf(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}

/** Throws GradusError('learner', 'server-refused') for what no client can fetch. */
function storeAt(location: string, at: string): URL {
  const url = new URL(location, at);
  if (/^https?:$/.test(url.protocol)) return url;
  throw new GradusError(
    'learner',
    'server-refused',
    `${at} says that the adapter is at ${location}, where only its own machine can read. Start a server that sends it`,
  );
}

async function get(at: string, key: string | undefined, signal: AbortSignal): Promise<Uint8Array> {
  try {
    const within = { signal: AbortSignal.any([signal, timeoutSignal(1000 * SECONDS)]) };
    const asked = await fetch(at, { ...within, headers: keyHeaders(key), redirect: 'manual' });
    const elsewhere = asked.headers.get('location');
    // The key is for the server alone: an archive lies in a store, behind an address that needs none.
    const response = elsewhere === null ? asked : await fetch(storeAt(elsewhere, at), within);
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
    const { status } = response;
    if (!isAway(status))
      throw new GradusError(
        'learner',
        'server-refused',
        `${at} answered ${status}: the adapter of each step comes back by this route. Start a server that has it`,
      );
    throw new GradusError('learner', 'server-away', `${at} answered ${status}`, {
      retryable: true,
      retryAfterSeconds: retryAfterOf(response.headers.get('retry-after')),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof GradusError) throw error;
    throw new GradusError('learner', 'server-away', `${at}: ${messageOf(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}
