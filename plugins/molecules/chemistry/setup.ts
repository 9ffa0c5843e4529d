/** `npm run setup:chemistry`: the Python of the chemistry worker, found or made. */
import { messageOf } from '../../../core/errors.ts';
import { takesNoArguments } from '../../../infra/setup/no-arguments.ts';
import { ensureChemistry, findChemistry } from './python.ts';

const say = (text: string) => process.stderr.write(`setup: ${text}\n`);

try {
  takesNoArguments();
  const found = await findChemistry();
  if (found === undefined) say('chemistry (RDKit, tblite, PySCF, temporalio): some 200 MB to download');
  say(`chemistry: ${found === undefined ? 'made' : 'found'}, ${found ?? (await ensureChemistry(say))}`);
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}
