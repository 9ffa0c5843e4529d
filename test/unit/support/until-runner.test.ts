import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { LEFT_OUT_FILE, TESTS_UNTIL } from '../../until-runner.ts';

const root = path.resolve(import.meta.dirname, '..', '..', '..');
const file = 'test/integration/store/object-store.test.ts';

test('a file that could not be begun in time is not loaded, counts as nothing passed, and is named', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-until-'));
  try {
    const [list, report] = [path.join(folder, 'list'), path.join(folder, 'report.json')];
    const vitest = path.join(root, 'node_modules', '.bin', 'vitest');
    const args = ['run', '--project', 'integration', '--reporter=json', `--outputFile.json=${report}`, file];
    const env = { ...process.env, [TESTS_UNTIL]: '1', [LEFT_OUT_FILE]: list };
    await promisify(execFile)(vitest, args, { cwd: root, env });
    expect(await readFile(list, 'utf8')).toBe(`${file}\n`);
    const counts = z.object({ numTotalTests: z.int(), numPassedTests: z.int(), numFailedTests: z.int() });
    const { numTotalTests, ...others } = counts.parse(JSON.parse(await readFile(report, 'utf8')));
    expect(numTotalTests).toBe(1);
    expect(others).toEqual({ numPassedTests: 0, numFailedTests: 0 });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
