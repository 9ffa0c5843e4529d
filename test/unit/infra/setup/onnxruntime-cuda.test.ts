import { expect, test } from 'vitest';
import { targetOf } from '../../../../infra/setup/onnxruntime-cuda.ts';

test("of the wheels, the providers and CUDA's libraries are kept where the loader looks for them", () => {
  expect(targetOf('onnxruntime/capi/libonnxruntime_providers_cuda.so', '/x')).toBe(
    '/x/libonnxruntime_providers_cuda.so',
  );
  expect(targetOf('nvidia/cu13/lib/libcublas.so.13', '/x')).toBe('/x/nvidia/cu13/lib/libcublas.so.13');
  expect(targetOf('nvidia/cudnn/lib/libcudnn.so.9', '/x')).toBe('/x/nvidia/cudnn/lib/libcudnn.so.9');
  expect(targetOf('nvidia/cu13/lib/libcudart_static.a', '/x')).toBeUndefined();
  expect(targetOf('nvidia/cu13/include/cuda.h', '/x')).toBeUndefined();
  expect(targetOf('onnxruntime/capi/libonnxruntime.so.1.30.0', '/x')).toBeUndefined();
});
