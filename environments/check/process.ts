import { messageOf } from '../../core/errors.ts';
import { loadModules } from '../index.ts';
import { look } from './look.ts';
import type { Seen } from './look.ts';

// A process that looks at environments: `process.ts MOST FILE…`, started by check.ts with a channel, to which it sends what
// it sees, one environment after the other.

export type FromLooker =
  { loading: string } | { looking: string } | { seen: Seen } | { failed: string } | { done: true };

const say = (message: FromLooker): Promise<void> =>
  new Promise((resolve) => process.send!(message, () => resolve()));

const [most, ...files] = process.argv.slice(2);
try {
  let loaded = await loadModules([], () => undefined);
  for (const [i, file] of files.entries()) {
    // Said before it is loaded, since it may hang; what was loaded before is not loaded again.
    await say({ loading: file });
    loaded = await loadModules(files.slice(0, i + 1), () => undefined);
  }
  for (const { environment, file } of loaded.values()) {
    if (!files.includes(file)) continue;
    await say({ looking: environment.name });
    await say({ seen: await look(environment, file, Number(most)) });
  }
  await say({ done: true });
} catch (error) {
  await say({ failed: messageOf(error) });
}
// What an environment has begun and not ended must not keep it.
process.exit();
