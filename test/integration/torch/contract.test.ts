import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { DAMAGE } from '../../../core/damage.ts';
import { goldenFiles } from '../../support/learner-contract.ts';
import { ROOT } from '../../support/markdown.ts';
import { openTestStore } from '../../support/test-store.ts';
import { TORCH_THREADS, withTorch } from '../../support/torch-learner.ts';

// The other side of these files is test/torch/test_contract.py.

const { store } = await openTestStore();
const GOLDEN = path.join(ROOT, 'test/golden/learner');
const page = readFileSync(path.join(ROOT, 'docs/learner-contract.md'), 'utf8');

interface Failure {
  type: string;
  retry: boolean;
  when: string;
}
const failures = JSON.parse(readFileSync(path.join(GOLDEN, 'failures.json'), 'utf8')) as Failure[];

test('the golden files of the learner are what is written today, to the byte', async () => {
  const written = await goldenFiles(store);
  expect(written.size).toBeGreaterThan(20);
  for (const [name, bytes] of written) {
    const kept = readFileSync(path.join(GOLDEN, name));
    expect(Buffer.from(bytes).equals(kept), name).toBe(true);
  }
});

test('the page of the contract lists every failure, and whether it is retried', () => {
  for (const { type, retry, when } of failures) {
    const row = page.split('\n').find((line) => line.startsWith('|') && line.includes(`\`${type}\``));
    expect(row, type).toBeDefined();
    expect(row).toContain(when);
    expect(
      row!
        .split('|')[2]!
        .trim()
        .startsWith(retry ? 'yes' : 'no'),
      type,
    ).toBe(true);
  }
  const store = failures.filter(({ type }) => DAMAGE.has(type.split('.')[2]!));
  // A run waits for what a person can restore: these must not be tried again and again.
  expect(store.every(({ retry }) => !retry)).toBe(true);
});

await withTorch((python) => {
  test('the Python side reads and writes the golden files', () => {
    const { status, stderr } = spawnSync(
      python,
      ['-m', 'unittest', 'discover', '--start-directory', path.join(ROOT, 'test/torch')],
      {
        encoding: 'utf8',
        env: {
          ...process.env,
          ...TORCH_THREADS,
          PYTHONPATH: path.join(ROOT, 'workers/torch'),
          PYTHONDONTWRITEBYTECODE: '1',
        },
      },
    );
    expect(stderr).toContain('OK');
    expect(status).toBe(0);
  }, 600_000);
});
