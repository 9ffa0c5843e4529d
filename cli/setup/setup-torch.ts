/** `npm run setup:torch`: the Python of the PyTorch learner, found or made. */
import { messageOf } from '../../core/errors.ts';
import { takesNoArguments } from '../../infra/setup/no-arguments.ts';
import { ensureTorch, findTorch } from './torch-python.ts';

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

try {
  takesNoArguments();
  const found = await findTorch();
  if (found === undefined) {
    say('PyTorch, transformers, PEFT and temporalio: some 3 GB to download, 6 GB on disk');
  }
  say(`torch: ${found === undefined ? 'made' : 'found'}, ${found ?? (await ensureTorch(say))}`);
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}
