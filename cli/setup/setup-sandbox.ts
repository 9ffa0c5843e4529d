/** `npm run setup:sandbox`: bubblewrap, found or fetched; with `--gvisor` gVisor, found or built; and what of the sandboxes works here. */
import { parseArgs } from 'node:util';
import { messageOf } from '../../core/errors.ts';
import { sandboxFacts } from '../../environments/sandbox/open-sandbox.ts';
import { offerBubblewrap } from '../../environments/sandbox/bubblewrap/setup.ts';
import { buildBinaries, requireGo } from '../../infra/setup/go-build.ts';
import { findBinary } from '../../infra/setup/server-binaries.ts';

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

try {
  const { values } = parseArgs({ options: { gvisor: { type: 'boolean' } } });
  await offerBubblewrap(say);
  if (values.gvisor && (await findBinary('runsc')) === undefined) {
    const go = await requireGo(['runsc']);
    await buildBinaries(['runsc'], go, say);
  }
  const facts = await sandboxFacts();
  for (const { name, works, missing } of facts) say(`${name}: ${works ? 'works' : missing}`);
  if (!facts.some(({ works }) => works)) process.exitCode = 1;
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}
