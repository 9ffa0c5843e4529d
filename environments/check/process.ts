import { sayPlaces, errorText } from '../host/facts.ts';
import { FAST_LIMIT_MS } from '../host/serve.ts';
import { loadModules } from '../families/index.ts';
import type { Loaded } from '../host/load-module.ts';
import { look, LOAD_SECONDS } from './look.ts';
import type { LookOptions, Seen } from './look.ts';
import { sourcePlaceOf } from './place.ts';
import type { Begun } from './play-through.ts';

// A process that looks at environments, started by looker.ts with a channel: it loads the modules that are its arguments,
// says which environments they have, and looks at each that it is asked for.

export type ToLooker = LookOptions & { look: string };

export type FromLooker =
  | { loading: string }
  /** A module that cannot be loaded; the others are. */
  | { broken: { file: string; what: string } }
  | { loaded: { name: string; file: string }[] }
  /** What comes next of the environment that is looked at, said before, since it may hang. */
  | { begun: Required<Begun> }
  /** Its time begins. */
  | { prepared: true }
  /** It does not keep its event loop. */
  | { alive: true }
  | { seen: Seen }
  | { failed: string };

const send = process.send!.bind(process);
// Users' code has no channel to whoever started its process, as in a run: a library that says there that it is ready would
// be taken at its word.
delete process.send;
Reflect.deleteProperty(process, 'disconnect');

/** Resolves also where nobody hears it any more: then this process is ending. */
const say = (message: FromLooker): Promise<void> => new Promise((resolve) => send(message, () => resolve()));

/** Between two signs of life, milliseconds. */
const SIGN_MS = 200;
const begin = (begun: Begun): Promise<void> => say({ begun: { seconds: FAST_LIMIT_MS / 1000, ...begun } });
const inWords = (error: unknown): string =>
  errorText(error) + sourcePlaceOf((error as { cause?: unknown } | null)?.cause);

/** Of each module that can be loaded, its environments by their names. What was loaded before is not loaded again. */
async function load(files: readonly string[]): Promise<Map<string, Loaded>> {
  let loaded = new Map<string, Loaded>();
  const whole: string[] = [];
  for (const file of files) {
    // Said before it is loaded, since it may hang.
    await say({ loading: file });
    try {
      const all = await loadModules([...whole, file]);
      whole.push(file);
      loaded = new Map([...all].filter(([, one]) => whole.includes(one.file)));
    } catch (error) {
      await say({ broken: { file, what: inWords(error) } });
    }
  }
  return loaded;
}

async function lookAt({ environment, file }: Loaded, options: LookOptions): Promise<void> {
  await begin({ what: 'prepare()', seconds: LOAD_SECONDS });
  await environment.prepare?.();
  await say({ prepared: true });
  await say({ seen: await look(environment, file, options, begin) });
}

sayPlaces(sourcePlaceOf);
// Ctrl-C in a terminal reaches this process, too; who has started it decides what then becomes of it.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit());
setInterval(() => void say({ alive: true }), SIGN_MS);

const loaded = await load(process.argv.slice(2));
process.on('message', ({ look: name, ...options }: ToLooker) => {
  lookAt(loaded.get(name)!, options).catch((error: unknown) => say({ failed: inWords(error) }));
});
await say({ loaded: [...loaded].map(([name, { file }]) => ({ name, file })) });
