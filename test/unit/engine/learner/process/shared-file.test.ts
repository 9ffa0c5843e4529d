import { fstatSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { RandomStream } from '../../../../../core/random.ts';
import {
  closeFile,
  openUnnamedFile,
  readValue,
  writeValue,
} from '../../../../../engine/learner/process/shared-file.ts';

test('more arrays than the system moves at once come back as they were, whatever their kind and length', async () => {
  const file = openUnnamedFile();
  onTestFinished(() => closeFile(file));
  const draw = new RandomStream('arrays', 1);
  const kinds = [Float32Array, Float64Array, Int32Array, Uint8Array];
  // Linux takes 1,024 in a call.
  const arrays = Array.from({ length: 3000 }, (_, i) =>
    new kinds[i % kinds.length]!(draw.int(0, 40)).map(() => draw.int(0, 255)),
  );
  const value = {
    arrays,
    words: 'beside them',
    none: new Float32Array(),
    large: new Uint8Array(5000).fill(7),
  };
  const written = await writeValue(file, value);
  expect(fstatSync(file).size).toBe(written.arrays + written.outline);
  expect(await readValue(file, written)).toEqual(value);
  expect(fstatSync(file).size).toBe(0);
  // The next value lies where the first one did.
  expect(await readValue(file, await writeValue(file, { arrays: [arrays[5]] }))).toEqual({
    arrays: [arrays[5]],
  });
});

test('a file that ends before its value does is told, and not waited for', async () => {
  const file = openUnnamedFile();
  onTestFinished(() => closeFile(file));
  const written = await writeValue(file, { numbers: new Float32Array(100) });
  await expect(readValue(file, { ...written, arrays: written.arrays + 400 })).rejects.toThrow(/ends/);
});
