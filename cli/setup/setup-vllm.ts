/** `npm run setup:vllm`: the real vLLM for processors, which served policies are compared with, found or made. */
import { messageOf } from '../../core/errors.ts';
import { takesNoArguments } from '../../infra/setup/no-arguments.ts';
import { ensureVllm, findVllm } from './vllm-python.ts';

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

try {
  takesNoArguments();
  const found = await findVllm();
  if (found === undefined) {
    say('vLLM for processors and its PyTorch: some 3 GB to download, 7 GB on disk');
  }
  say(`vllm: ${found === undefined ? 'made' : 'found'}, ${found ?? (await ensureVllm(say))}`);
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}
