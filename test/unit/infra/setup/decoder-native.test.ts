import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { findOnPath, runCommand } from '../../../../infra/setup/command.ts';
import { ensureNativeDecoder } from '../../../../engine/decoder/native/setup.ts';

// A C++ compiler takes minutes where others need the processors, too.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 60_000 });

const checkout = path.resolve(import.meta.dirname, '../../../..');
const canBuild = Boolean((await findOnPath('go')) && (await findOnPath('g++')));
let root: string;
let native: string;

/** A checkout of nothing but what is built. */
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'gradus-native-'));
  native = path.join(root, 'engine', 'decoder', 'native');
  await mkdir(path.dirname(native), { recursive: true });
  await cp(path.join(checkout, 'engine', 'decoder', 'native'), native, {
    recursive: true,
    filter: (file) => !file.endsWith('.node'),
  });
  await symlink(path.join(checkout, 'node_modules'), path.join(root, 'node_modules'));
});
afterEach(() => rm(root, { recursive: true }));

const env = () => ({ ...process.env, GRADUS_CACHE: path.join(root, 'cache') });

test.runIf(canBuild)(
  'the native decoder is built once, found again, and built anew when its sources change',
  async () => {
    const [one, other] = await Promise.all([1, 2].map(() => ensureNativeDecoder(root, env())));
    expect(one!.addon).toBe(other!.addon);
    expect(await readlink(path.join(native, 'decoder.node'))).toBe(one!.addon);
    expect(await ensureNativeDecoder(root, env())).toEqual({ addon: one!.addon, from: 'cache' });
    await writeFile(path.join(native, 'more.cc'), '// more\n');
    const newer = await ensureNativeDecoder(root, env());
    expect(newer.from).toBe('built');
    expect(await readlink(path.join(native, 'decoder.node'))).toBe(newer.addon);

    // What was built from other sources than a checkout has is not used there.
    const module = path.join(checkout, 'engine', 'decoder', 'load-backend.ts');
    const asked = await runCommand(
      process.execPath,
      [
        '--import',
        'tsx',
        '-e',
        `import(${JSON.stringify(module)}).then((it) => console.log(it.backendName()))`,
      ],
      { env: { ...process.env, GRADUS_DECODER_ADDON: newer.addon } },
    );
    expect(asked.stdout).toMatch(/^stock decoder.*of other sources.*npm run setup/);
  },
);

test.runIf(canBuild)('a build that fails says why and leaves nothing behind', async () => {
  await writeFile(path.join(native, 'wrong.cc'), 'this is no C++\n');
  await expect(ensureNativeDecoder(root, env())).rejects.toMatchObject({
    type: 'build-failed',
    message: expect.stringMatching(/wrong\.cc.*stock decoder serves instead/s) as string,
  });
  expect(existsSync(path.join(native, 'decoder.node'))).toBe(false);
});

test('without a compiler or Go it says what it needs', async () => {
  await expect(ensureNativeDecoder(root, { ...env(), PATH: '/nowhere' })).rejects.toThrow(
    /g\+\+ or clang\+\+/,
  );
});
