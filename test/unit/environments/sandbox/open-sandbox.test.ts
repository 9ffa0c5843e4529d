import { afterEach, expect, test, vi } from 'vitest';
import { openSandbox, sandboxNeeds } from '../../../../environments/sandbox/open-sandbox.ts';

afterEach(() => vi.unstubAllEnvs());

test('what runs programs needs the sandbox that they would run in', async () => {
  const found = await openSandbox().catch(() => undefined);
  const what = found === undefined ? 'a sandbox' : `a sandbox (${found.name})`;
  expect(await sandboxNeeds()).toMatchObject([{ what, present: found !== undefined }]);
});

test('where there is none it is missing, whatever runs single languages', async () => {
  vi.stubEnv('GRADUS_SANDBOX', 'no-such-sandbox');
  await expect(openSandbox()).rejects.toMatchObject({ type: 'no-sandbox' });
  expect(await sandboxNeeds()).toMatchObject([{ what: 'a sandbox', present: false }]);
});
