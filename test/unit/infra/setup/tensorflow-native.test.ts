import { expect, test } from 'vitest';
import {
  compilerArguments,
  parseSource,
  tensorFlowCacheEntry,
  wantsGpu,
  wheelFor,
  wheelTarget,
} from '../../../../infra/setup/tensorflow-native.ts';

test('the source of libtensorflow is one of three words', () => {
  expect(parseSource(undefined)).toBe('auto');
  expect(parseSource('wheel')).toBe('wheel');
  expect(() => parseSource('weel')).toThrow(
    /GRADUS_LIBTENSORFLOW is "weel"; it can be auto, wheel, installer/,
  );
});

test('a GPU is wanted when asked for, and not looked for when declined', async () => {
  expect(await wantsGpu({ GRADUS_TENSORFLOW_GPU: '1' })).toBe(true);
  expect(await wantsGpu({ GRADUS_TENSORFLOW_GPU: '0' })).toBe(false);
  expect(await wantsGpu({ PATH: '/nowhere' })).toBe(false);
});

test('each package and processor has its wheel', () => {
  expect(wheelFor('tfjs-node', 'x64').project).toBe('tensorflow-cpu');
  expect(wheelFor('tfjs-node-gpu', 'x64').project).toBe('tensorflow');
  expect(wheelFor('tfjs-node', 'arm64').project).toBe('tensorflow');
});

test('libraries and C headers are taken out of a wheel, and nothing else', () => {
  const target = (entry: string) => wheelTarget(entry, '/lib', '/include');
  expect(target('tensorflow/libtensorflow_cc.so.2')).toBe('/lib/libtensorflow_cc.so.2');
  expect(target('tensorflow/include/tensorflow/c/c_api.h')).toBe('/include/tensorflow/c/c_api.h');
  expect(target('tensorflow/include/external/local_xla/xla/tsl/c/tsl_status.h')).toBe(
    '/include/external/local_xla/xla/tsl/c/tsl_status.h',
  );
  expect(target('tensorflow/include/tensorflow/core/graph/graph.h')).toBeUndefined();
  expect(target('tensorflow/python/pywrap.so.2')).toBeUndefined();
});

test('the addon finds its libraries beside it, wherever the cache is', () => {
  const args = compilerArguments({
    sources: '/pkg/binding',
    nodeHeaders: '/napi',
    headers: '/include',
    libraries: '/lib',
    output: '/lib/tfjs_binding.node',
  });
  expect(args).toContain('-Wl,-rpath,$ORIGIN');
  expect(args).toContain('-I/pkg');
});

test('both packages and the versions that they depend on are told apart in the cache', () => {
  const [cpu, gpu] = (['tfjs-node', 'tfjs-node-gpu'] as const).map((name) =>
    tensorFlowCacheEntry('/c', name),
  );
  expect(cpu).toMatch(/tfjs-node-4\.22\.0-tf2\.20\.0-napi8-/);
  expect(gpu).not.toBe(cpu);
});
