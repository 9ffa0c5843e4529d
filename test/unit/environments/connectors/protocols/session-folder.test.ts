import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { makeSessionFolder } from '../../../../../environments/connectors/protocols/session-folder.ts';

const NOBODY = 65_534;

// Only root can make what is another user's.
test.runIf(process.getuid?.() === 0)(
  'what a process that is no more has left is removed, and what is another user’s is left alone',
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'gradus-tmp-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { pid: ended } = spawnSync('true');
    const left = (whose: string): string => {
      const made = path.join(folder, `gradus-sessions-${hostname()}-${ended}-${whose}`);
      mkdirSync(made);
      return made;
    };
    const [ours, others] = [left('ours'), left('others')];
    chownSync(others, NOBODY, NOBODY);
    vi.stubEnv('TMPDIR', folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(path.dirname(path.dirname(await makeSessionFolder()))).toBe(folder);
    expect([ours, others].map((one) => existsSync(one))).toEqual([false, true]);
  },
);
