import { expect, test } from 'vitest';
import { BuildProgress } from '../../../../infra/setup/build-progress.ts';

test('a bar tells how much of the sources is compiled, and how long the rest will take', () => {
  const sources = new Map(Array.from({ length: 10 }, (_, i) => [`p${i}`, 1000]));
  const progress = new BuildProgress(sources);
  const told = [...sources.keys()].map((name, i) => progress.compiling(name, i * 60_000));
  // Two are being compiled at any time.
  expect(told.slice(0, 3)).toEqual([null, null, '██░░░░░░░░░░░░░░░░░░ 10 %, about 18 min left']);
  expect(told.at(-1)).toBe('████████████████░░░░ 80 %, about 2 min left');
});

test('lines that name no package, and small packages, are not worth a bar', () => {
  const progress = new BuildProgress(
    new Map([
      ['small', 1],
      ['next', 1],
      ['last', 1],
      ['large', 1000],
    ]),
  );
  expect(progress.compiling('go: downloading x v1.0.0', 0)).toBeNull();
  expect(['small', 'next', 'last', 'large'].map((name, i) => progress.compiling(name, i))).toEqual([
    null,
    null,
    null,
    null,
  ]);
});
