/**
 * The second part of the set-up of a checkout, run by bootstrap.mjs once the packages are there. `--stamp FILE --key KEY`
 * records that all is well, so that the next start skips this. `--tools`: with what people look at workflows with.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { messageOf } from '../../core/errors.ts';
import { setUp } from './set-up.ts';

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { stamp: { type: 'string' }, key: { type: 'string' }, tools: { type: 'boolean' } },
  });
  const { tools = false } = values;
  const paths = await setUp(say, { tools });
  if (values.stamp !== undefined && values.key !== undefined) {
    await writeFile(values.stamp, JSON.stringify({ key: values.key, tools, paths }));
  }
}

main().catch((error: unknown) => {
  say(messageOf(error));
  process.exitCode = 1;
});
