/** `npm run setup:browser`: Chromium and MiniWoB's pages, found or fetched. */
import { messageOf } from '../../core/errors.ts';
import { findChromium } from '../../environments/sandbox/browser/find-chromium.ts';
import { ensureChromium } from '../../environments/sandbox/browser/setup.ts';
import { ensureMiniwob } from '../../environments/families/miniwob/setup.ts';
import { takesNoArguments } from '../../infra/setup/no-arguments.ts';

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

try {
  takesNoArguments();
  if ('missing' in findChromium()) {
    say('Chromium: some 100 MB to download, 300 MB on disk');
    await ensureChromium(say);
  }
  const found = findChromium();
  say(`Chromium: ${'missing' in found ? found.missing : found.executable}`);
  say(`MiniWoB's pages: ${await ensureMiniwob(say)}`);
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}
