import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { packagesIn, pipProgress } from '../../../../infra/setup/pip-progress.ts';

test('of what pip prints packages, downloads with their sizes, what is built and unpacking are said', () => {
  const progress = pipProgress(2);
  const lines = [
    'Looking in indexes: https://pypi.org/simple',
    'Collecting numpy==2.2.6 (from -r requirements.txt (line 1))',
    '  Downloading numpy-2.2.6-cp312-cp312-manylinux_2_17_x86_64.whl (16.5 MB)',
    'Collecting six==1.17.0',
    '  Using cached six-1.17.0-py2.py3-none-any.whl',
    'Collecting llama-cpp-python>=0.3 (from six)',
    'Building wheels for collected packages: llama-cpp-python',
    '  Building wheel for llama-cpp-python (pyproject.toml): started',
    "  Building wheel for llama-cpp-python (pyproject.toml): finished with status 'done'",
    'Installing collected packages: six, numpy',
    'Successfully installed numpy-2.2.6 six-1.17.0',
  ];
  expect(lines.map(progress)).toEqual([
    null,
    'package 1 of 2: numpy==2.2.6',
    'Downloading numpy-2.2.6-cp312-cp312-manylinux_2_17_x86_64.whl (16.5 MB)',
    'package 2 of 2: six==1.17.0',
    null,
    'package 3: llama-cpp-python>=0.3',
    null,
    'building llama-cpp-python',
    null,
    'unpacking 2 packages',
    null,
  ]);
});

test('packages are counted in files with digests and without', () => {
  const file = new URL(
    '../../../../environments/connectors/packages/gymnasium/requirements.txt',
    import.meta.url,
  );
  const pinned = readFileSync(file, 'utf8').split('\n');
  expect(packagesIn(pinned.join('\n'))).toBe(pinned.filter((line) => /^[a-z].*==/u.test(line)).length);
  expect(packagesIn('# nothing\n')).toBe(0);
});
