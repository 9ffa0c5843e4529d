import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readSettings, settingsToEnv } from '../../../workers/settings.ts';

const needed = {
  GRADUS_S3_URL: 'http://127.0.0.1:9000',
  GRADUS_S3_ACCESS_KEY: 'key',
  GRADUS_S3_SECRET_KEY: 'secret',
};
const refusal = (env: NodeJS.ProcessEnv): string => {
  try {
    readSettings(env);
  } catch (error) {
    expect(error).toMatchObject({ boundary: 'infra', type: 'settings', retryable: false });
    return (error as Error).message;
  }
  throw new Error('the settings were taken');
};

describe('the settings of a worker', () => {
  test('name every variable that is missing, at once', () => {
    const message = refusal({});
    for (const name of Object.keys(needed)) expect(message).toContain(`  ${name}: is not set`);
    expect(message).toContain('npm run dev');
    expect(message).not.toContain('TEMPORAL');
  });

  test('name what is wrong with a variable, and do not say that it is missing', () => {
    const message = refusal({
      ...needed,
      TEMPORAL_ADDRESS: 'http://127.0.0.1:7233',
      GRADUS_S3_URL: '127.0.0.1:9000',
    });
    expect(message).toContain('  TEMPORAL_ADDRESS: must be HOST:PORT');
    expect(message).toContain('  GRADUS_S3_URL: must be http://');
    expect(message).not.toContain('is not set');
    expect(refusal({ ...needed, GRADUS_DECODER_THREADS: 'many' })).toContain('GRADUS_DECODER_THREADS');
  });

  test('never print a secret', () => {
    expect(refusal({ ...needed, TEMPORAL_ADDRESS: 'x' })).not.toContain('secret');
  });

  test.each(['', 'secret\n', 'secret\r\nX-Other: 1', 'a secret', 'sécret'])(
    'refuse a key that no header may have: %j',
    (GRADUS_TINKER_KEY) => {
      const message = refusal({ ...needed, GRADUS_TINKER_KEY });
      expect(message).toContain('  GRADUS_TINKER_KEY: must be');
      expect(message).not.toContain('cret');
    },
  );

  test.each([
    ['https://s3.example', 443, true],
    ['http://s3.example', 80, false],
    ['https://s3.example:9000', 9000, true],
  ])('know the port of %s', (url, port, useSSL) => {
    expect(readSettings({ ...needed, GRADUS_S3_URL: url }).store).toMatchObject({
      endPoint: 's3.example',
      port,
      useSSL,
    });
  });

  test('have defaults for what one machine needs', () => {
    expect(readSettings(needed)).toMatchObject({
      temporalAddress: '127.0.0.1:7233',
      namespace: 'default',
      environmentModules: [],
      payloadLimit: undefined,
      store: { bucket: 'gradus' },
    });
  });

  test('give each tier a concurrency and a rate of its own', () => {
    expect(readSettings(needed)).toMatchObject({
      tierConcurrency: { simulation: 4, 'high-fidelity': 4 },
      tierRate: { simulation: undefined, 'high-fidelity': undefined },
    });
    const GRADUS_TIER_CONCURRENCY = 'simulation=8, high-fidelity=1';
    expect(
      readSettings({ ...needed, GRADUS_TIER_CONCURRENCY, GRADUS_TIER_RATE: 'high-fidelity=0.5' }),
    ).toMatchObject({
      tierConcurrency: { simulation: 8, 'high-fidelity': 1 },
      tierRate: { simulation: undefined, 'high-fidelity': 0.5 },
    });
    expect(readSettings({ ...needed, GRADUS_TIER_CONCURRENCY: '2' }).tierConcurrency).toEqual({
      simulation: 2,
      'high-fidelity': 2,
    });
    for (const wrong of ['many', 'simulation=', 'simulation=0', 'world=3', 'simulation=1.5']) {
      expect(refusal({ ...needed, GRADUS_TIER_CONCURRENCY: wrong })).toContain(
        `GRADUS_TIER_CONCURRENCY: "${wrong}" is neither a number nor TIER=NUMBER`,
      );
    }
  });

  test('come back from the variables that they are written into', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9]{2,8}$/u);
    const tiers = <T>(each: fc.Arbitrary<T>) => fc.record({ simulation: each, 'high-fidelity': each });
    const settings = fc.record({
      temporalAddress: fc
        .tuple(word, fc.integer({ min: 1, max: 65535 }))
        .map(([host, port]) => `${host}:${port}`),
      namespace: word,
      store: fc.record(
        {
          endPoint: fc.oneof(word, fc.constantFrom('127.0.0.1', '[::1]')),
          port: fc.integer({ min: 1, max: 65535 }),
          useSSL: fc.boolean(),
          accessKey: fc.string({ minLength: 1 }),
          secretKey: fc.string({ minLength: 1 }),
          bucket: word,
          cacheDir: word.map((name) => `/var/cache/${name}`),
        },
        { requiredKeys: ['endPoint', 'port', 'useSSL', 'accessKey', 'secretKey', 'bucket'] },
      ),
      environmentModules: fc.array(word.map((name) => `./${name}.ts`)),
      extensionModules: fc.array(word.map((name) => `./${name}.ts`)),
      hostVariables: fc.array(word),
      hostMemory: fc.integer({ min: 128, max: 2 ** 20 }),
      decoderThreads: fc.integer({ min: 1, max: 64 }),
      tierConcurrency: tiers(fc.integer({ min: 1, max: 64 })),
      tierRate: tiers(fc.option(fc.double({ min: 0.01, max: 100, noNaN: true }), { nil: undefined })),
      payloadLimit: fc.option(fc.integer({ min: 1024, max: 2 ** 21 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(settings, (settings) => {
        expect(readSettings(settingsToEnv(settings))).toEqual(settings);
      }),
    );
  });
});
