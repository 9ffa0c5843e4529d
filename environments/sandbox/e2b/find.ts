import { messageOf } from '../../../core/errors.ts';
import type { Sandbox } from '../contract.ts';
import { probe } from '../linux/probe.ts';
import { E2B } from './e2b.ts';

/**
 * E2B's protocol, where a server answers and has run a command in a machine without network. Looking takes two machines:
 * it is for who has chosen it.
 */
export async function findE2B(
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ sandbox: Sandbox } | { missing: string }> {
  if (!env['E2B_API_KEY']) {
    return {
      missing:
        'E2B_API_KEY is not set: it is the key of an account, or of a server of your own that E2B_API_URL and E2B_SANDBOX_URL name',
    };
  }
  const sandbox = new E2B(env['GRADUS_E2B_TEMPLATE'] ?? 'base');
  try {
    if (!(await sandbox.confirmsNoNetwork())) {
      return { missing: 'the server does not say that its machines are without network' };
    }
  } catch (error) {
    return { missing: messageOf(error) };
  }
  const wrong = await probe(sandbox);
  return wrong === undefined
    ? { sandbox }
    : { missing: `no command runs there (the template needs util-linux, tar and coreutils): ${wrong}` };
}
