import { sayPlaces, wordsOf } from '../host/facts.ts';
import { FAST_LIMIT_MS } from '../host/serve.ts';
import { loadModules } from '../index.ts';
import { look } from './look.ts';
import type { Begun, Seen } from './look.ts';
import { placeOf } from './place.ts';

// A process that looks at environments: `process.ts MOST FILE…`, started by check.ts with a channel, to which it sends what
// it sees, one environment after the other.

export type FromLooker =
  | { loading: string }
  | { looking: string }
  /** What comes next of the environment that is looked at, said before, since it may hang. */
  | { begun: Required<Begun> }
  /** It does not keep its event loop. */
  | { alive: true }
  | { seen: Seen }
  | { failed: string }
  | { done: true };

const say = (message: FromLooker): Promise<void> =>
  new Promise((resolve) => process.send!(message, () => resolve()));

/** Between two signs of life, milliseconds. */
const SIGN_MS = 200;
const begin = (begun: Begun): Promise<void> => say({ begun: { seconds: FAST_LIMIT_MS / 1000, ...begun } });

sayPlaces(placeOf);
setInterval(() => process.send!({ alive: true } satisfies FromLooker), SIGN_MS);
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
    await say({ seen: await look(environment, file, Number(most), begin) });
  }
  await say({ done: true });
} catch (error) {
  await say({ failed: wordsOf(error) + placeOf((error as { cause?: unknown } | null)?.cause) });
}
// What an environment has begun and not ended must not keep it.
process.exit();
