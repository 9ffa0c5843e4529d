import { readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { adviceFor, findBubblewrap } from '../../../../../environments/sandbox/bubblewrap/find.ts';

describe('what to do where bubblewrap may not make namespaces', () => {
  const refused = 'bwrap: setting up uid map: Permission denied';
  const advice = (settings: Record<string, string>) =>
    adviceFor(refused, '/cache/bwrap', (name) => settings[name]);

  test.each([
    [{ 'user/max_user_namespaces': '0' }, 'user.max_user_namespaces is 0'],
    [{ 'kernel/unprivileged_userns_clone': '0' }, 'sysctl -w kernel.unprivileged_userns_clone=1'],
    [
      { 'kernel/apparmor_restrict_unprivileged_userns': '1' },
      'give /cache/bwrap an AppArmor profile with "userns,"',
    ],
  ])('is told by the setting that forbids it: %o', (forbidding, words) => {
    const allowing = {
      'user/max_user_namespaces': '96365',
      'kernel/unprivileged_userns_clone': '1',
      'kernel/apparmor_restrict_unprivileged_userns': '0',
    };
    const text = advice({ ...allowing, ...forbidding });
    expect(text).toContain(words);
    expect(text).toContain(refused);
    expect(text).not.toContain('Docker');
    expect(advice(allowing)).toContain('Docker');
  });

  test('is not told where it failed of something else', () => {
    expect(adviceFor('no such program', '/cache/bwrap')).toBe('no such program');
  });
});

test.runIf(process.platform === 'linux')(
  'where it may make no namespaces, looking for it leaves no descriptor open',
  async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'gradus-bwrap-'));
    const bwrap = path.join(folder, 'bwrap');
    const script =
      '[ "$1" = --help ] && { echo --disable-userns --size --perms --info-fd --args; exit; }; exit 1';
    await writeFile(bwrap, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const look = () => findBubblewrap({ ...process.env, GRADUS_BWRAP: bwrap });
    try {
      expect(await look()).toMatchObject({
        missing: expect.stringContaining('does not work here') as string,
      });
      const before = readdirSync('/proc/self/fd').length;
      for (let i = 0; i < 5; i++) await look();
      expect(readdirSync('/proc/self/fd').length - before).toBeLessThan(3);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
