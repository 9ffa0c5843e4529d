import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { GradusError } from '../core/errors.ts';
import { commandLine } from '../core/installation.ts';

/** Tiers with a worker in TypeScript. */
export type ServedTier = 'simulation' | 'high-fidelity';
export const SERVED_TIERS: readonly ServedTier[] = ['simulation', 'high-fidelity'];

/** `4` for every tier, or `simulation=8,high-fidelity=2`; tiers that are left out have `otherwise`. */
const perTier = <T>(number: z.ZodType<number>, otherwise: T) =>
  z
    .string()
    .default('')
    .transform((text, context): Record<ServedTier, number | T> => {
      const values: Record<ServedTier, number | T> = { simulation: otherwise, 'high-fidelity': otherwise };
      for (const part of text.split(',').filter((one) => one.trim() !== '')) {
        const [name, written] = part.includes('=') ? part.split('=', 2) : [undefined, part];
        const tier = name?.trim() as ServedTier | undefined;
        const value = number.safeParse(Number(written.trim() === '' ? Number.NaN : written));
        if ((tier !== undefined && !SERVED_TIERS.includes(tier)) || !value.success) {
          const message = `"${part}" is neither a number nor TIER=NUMBER, with a tier of ${SERVED_TIERS.join(', ')}`;
          context.addIssue({ code: 'custom', message });
          return z.NEVER;
        }
        for (const one of tier === undefined ? SERVED_TIERS : [tier]) values[one] = value.data;
      }
      return values;
    });

const tierList = (values: Record<ServedTier, number | undefined>): string =>
  SERVED_TIERS.flatMap((tier) => (values[tier] === undefined ? [] : [`${tier}=${values[tier]}`])).join(',');

const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** What may stand in a header of HTTP. */
const IN_HEADER = /^[\x21-\x7e]+$/;

const schema = z.object({
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^/]+:\d+$/, 'must be HOST:PORT')
    .default('127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  GRADUS_S3_URL: z.url({ protocol: /^https?$/, error: 'must be http://HOST:PORT or https://HOST' }),
  GRADUS_S3_ACCESS_KEY: z.string().min(1),
  GRADUS_S3_SECRET_KEY: z.string().min(1),
  GRADUS_S3_BUCKET: z.string().min(3).default('gradus'),
  GRADUS_BLOB_CACHE: z.string().optional(),
  GRADUS_ENVIRONMENTS: z.string().default(''),
  GRADUS_EXTENSIONS: z.string().default(''),
  GRADUS_DECODER_THREADS: z.coerce.number().int().min(1).default(Math.min(availableParallelism(), 8)),
  GRADUS_TIER_CONCURRENCY: perTier(z.int().min(1), 4),
  GRADUS_TIER_RATE: perTier(z.number().positive(), undefined),
  GRADUS_HOST_ENV: z.string().default(''),
  GRADUS_HOST_MEMORY: z.coerce.number().int().min(128).default(2048),
  GRADUS_PAYLOAD_LIMIT: z.coerce.number().int().min(1024).optional(),
  GRADUS_TINKER_URL: z
    .url({ protocol: /^https?$/, error: 'must be http://HOST:PORT or https://HOST' })
    .optional(),
  GRADUS_TINKER_KEY: z
    .string()
    .regex(IN_HEADER, 'must be letters, digits and signs without a space or a line break')
    .optional(),
  GRADUS_TINKER_MODEL: z.string().min(1).optional(),
});

/** What a worker needs to know about its surroundings, from environment variables. */
export interface WorkerSettings {
  temporalAddress: string;
  namespace: string;
  store: {
    endPoint: string;
    port: number;
    useSSL: boolean;
    accessKey: string;
    secretKey: string;
    bucket: string;
    cacheDir?: string;
  };
  /** Modules that export environments, beside the built-in ones. */
  environmentModules: string[];
  /** Modules that bring methods and rules of the reward. */
  extensionModules: string[];
  /** Names of environment variables that environments may read. */
  hostVariables: string[];
  /** Memory that one process of environments may take, MB. */
  hostMemory: number;
  decoderThreads: number;
  /** Computations at once in a worker of the tier. */
  tierConcurrency: Record<ServedTier, number>;
  /** Computations of the tier begun per second at most, by all of its workers together. */
  tierRate: Record<ServedTier, number | undefined>;
  /** Refuse payloads above this many bytes, for tests; undefined lets Temporal's own limits hold. */
  payloadLimit: number | undefined;
  /** A server of Tinker's API that trains in the place of the learner's own process; absent: none. */
  tinker?: { url: string; key: string | undefined; baseModel: string | undefined } | undefined;
}

const hostSchema = schema.pick({
  GRADUS_ENVIRONMENTS: true,
  GRADUS_HOST_ENV: true,
  GRADUS_HOST_MEMORY: true,
});

/** What processes of environments are started with; it says nothing of servers. */
export type HostSettings = Pick<WorkerSettings, 'environmentModules' | 'hostVariables' | 'hostMemory'>;

/** Throws as `readSettings`, of which it is a part. */
export function readHostSettings(env: NodeJS.ProcessEnv = process.env): HostSettings {
  const values = read(hostSchema, env);
  return {
    environmentModules: listOf(values.GRADUS_ENVIRONMENTS),
    hostVariables: listOf(values.GRADUS_HOST_ENV),
    hostMemory: values.GRADUS_HOST_MEMORY,
  };
}

export const hostOptions = ({ environmentModules, hostVariables, hostMemory }: HostSettings) => ({
  modules: environmentModules,
  variables: hostVariables,
  memoryBytes: hostMemory * 2 ** 20,
});

/** Throws GradusError('infra', 'settings') that names each variable that is missing or wrong. */
export function readSettings(env: NodeJS.ProcessEnv = process.env): WorkerSettings {
  const values = read(schema, env);
  const url = new URL(values.GRADUS_S3_URL);
  const useSSL = url.protocol === 'https:';
  return {
    temporalAddress: values.TEMPORAL_ADDRESS,
    namespace: values.TEMPORAL_NAMESPACE,
    store: {
      endPoint: url.hostname,
      port: url.port === '' ? (useSSL ? 443 : 80) : Number(url.port),
      useSSL,
      accessKey: values.GRADUS_S3_ACCESS_KEY,
      secretKey: values.GRADUS_S3_SECRET_KEY,
      bucket: values.GRADUS_S3_BUCKET,
      ...(values.GRADUS_BLOB_CACHE === undefined ? {} : { cacheDir: values.GRADUS_BLOB_CACHE }),
    },
    ...readHostSettings(env),
    extensionModules: listOf(values.GRADUS_EXTENSIONS),
    decoderThreads: values.GRADUS_DECODER_THREADS,
    tierConcurrency: values.GRADUS_TIER_CONCURRENCY,
    tierRate: values.GRADUS_TIER_RATE,
    payloadLimit: values.GRADUS_PAYLOAD_LIMIT,
    ...(values.GRADUS_TINKER_URL !== undefined && {
      tinker: {
        url: values.GRADUS_TINKER_URL,
        key: values.GRADUS_TINKER_KEY,
        baseModel: values.GRADUS_TINKER_MODEL,
      },
    }),
  };
}

function read<Schema extends z.ZodType>(schema: Schema, env: NodeJS.ProcessEnv): z.output<Schema> {
  const parsed = schema.safeParse(env);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map(
    ({ path, message }) =>
      `  ${path.join('.')}: ${env[String(path[0])] === undefined ? 'is not set' : message}`,
  );
  throw new GradusError(
    'infra',
    'settings',
    `a worker needs these variables; set them ("${commandLine('dev')}" does it for you):\n${lines.join('\n')}`,
  );
}

/** The variables that make `readSettings` give these settings: for worker processes that are started by another. */
export function settingsToEnv(settings: WorkerSettings): Record<string, string> {
  const { store } = settings;
  return {
    TEMPORAL_ADDRESS: settings.temporalAddress,
    TEMPORAL_NAMESPACE: settings.namespace,
    GRADUS_S3_URL: `${store.useSSL ? 'https' : 'http'}://${store.endPoint}:${store.port}`,
    GRADUS_S3_ACCESS_KEY: store.accessKey,
    GRADUS_S3_SECRET_KEY: store.secretKey,
    GRADUS_S3_BUCKET: store.bucket,
    GRADUS_ENVIRONMENTS: settings.environmentModules.join(','),
    GRADUS_EXTENSIONS: settings.extensionModules.join(','),
    GRADUS_HOST_ENV: settings.hostVariables.join(','),
    GRADUS_HOST_MEMORY: String(settings.hostMemory),
    GRADUS_DECODER_THREADS: String(settings.decoderThreads),
    GRADUS_TIER_CONCURRENCY: tierList(settings.tierConcurrency),
    GRADUS_TIER_RATE: tierList(settings.tierRate),
    ...(store.cacheDir === undefined ? {} : { GRADUS_BLOB_CACHE: store.cacheDir }),
    ...(settings.tinker && {
      GRADUS_TINKER_URL: settings.tinker.url,
      ...(settings.tinker.key !== undefined && { GRADUS_TINKER_KEY: settings.tinker.key }),
      ...(settings.tinker.baseModel !== undefined && { GRADUS_TINKER_MODEL: settings.tinker.baseModel }),
    }),
    ...(settings.payloadLimit === undefined ? {} : { GRADUS_PAYLOAD_LIMIT: String(settings.payloadLimit) }),
  };
}
