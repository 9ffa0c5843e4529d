import { AsyncLocalStorage } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { GradusError } from '../../core/errors.ts';
import { pathToFileURL } from 'node:url';
import { loadModule } from './load-module.ts';
import { FAMILIES_MODULE } from './ready.ts';
import type { Loaded } from './load-module.ts';
import { fromError } from './asks.ts';
import { Channel } from './channel.ts';
import { environmentFactsOf, errorText } from './facts.ts';
import { rememberIntrinsics } from './intrinsics.ts';
import type { Intrinsics } from './intrinsics.ts';
import { CHANGED, TOO_MUCH_MEMORY } from './messages.ts';
import type { FromHost, HostModule, ToHost } from './messages.ts';
import { serve } from './serve.ts';

// The process in which users' code runs: `process.ts MEMORY_BYTES MARK`, started by host-process.ts with MARK in its
// environment. It has no secrets, and is killed when it hangs.

/** The descriptor over which it talks with the worker. */
const CHANNEL = 3;
/** The one that its watching thread has, over which it says why it ends itself. */
const LIFELINE = 4;
/** How often it says that its event loop turns, while there is work, milliseconds. */
const ALIVE_MS = 250;
/** Messages go together in lines of at most so many characters: images make some of them long. */
const LONGEST_LINE = 2 ** 24;
/** Longest details of a heartbeat, as JSON, in characters. */
const LONGEST_DETAILS = 2000;

const watch = new Worker(new URL('./watch.mjs', import.meta.url), {
  workerData: { memoryBytes: Number(process.argv[2]), mark: process.argv[3], tooMuchMemory: TOO_MUCH_MEMORY },
  execArgv: [],
});
watch.unref();

let environments = new Map<string, Loaded>();
const calls = new Map<number, AbortController>();
/** Which ask began what runs now. */
const began = new AsyncLocalStorage<number>();
let alive: NodeJS.Timeout | undefined;
let outbox: FromHost[] = [];
/** By ask, those in it. */
const beats = new Map<number, FromHost>();
/** What the worker knows this process by; users' code is not shown it. */
let ownMark = '';
/** As they were when the module was loaded; what `prepare()` changes belongs to that. */
let intrinsics: Intrinsics | undefined;
let preparing = 0;
/** It has a module of users. */
let foreign = false;
const kill = process.kill.bind(process, process.pid, 'SIGKILL');
const now = performance.now.bind(performance);
/** When it was last looked everywhere, milliseconds. */
let lookedAt = -Infinity;

/** What was worked out since the language was changed nobody may have. Calls nothing that may have been changed. */
function endIfChanged(what: string | null | undefined): void {
  if (what === null || what === undefined) return;
  try {
    writeSync(LIFELINE, `${CHANGED}${what}`);
  } finally {
    kill();
  }
}

/** Everywhere now and then: also where each ask is answered so soon that no timer comes between. */
function look(): void {
  const everywhere = now() - lookedAt >= ALIVE_MS;
  if (everywhere) lookedAt = now();
  endIfChanged(everywhere ? intrinsics?.changedAnywhere() : intrinsics?.changed());
}

/** Gradus's own environments share their process with no code of users: looking costs a fifth of what asking does. */
function remember(): void {
  intrinsics = foreign ? rememberIntrinsics() : undefined;
}

const notePreparing = (isIt: boolean): void => {
  preparing += isIt ? 1 : -1;
  if (preparing === 0) remember();
  else intrinsics = undefined;
};

function say(message: FromHost): void {
  if (outbox.push(message) === 1) setImmediate(flush);
}

/** Of those of one ask that are waiting to be said the last is enough: a loop may give a million. */
function beat(message: Extract<FromHost, { is: 'heartbeat' }>): void {
  const waiting = beats.get(message.id);
  beats.set(message.id, message);
  if (waiting === undefined) say(message);
  else outbox[outbox.indexOf(waiting)] = message;
}

function flush(): void {
  look();
  beats.clear();
  const messages = outbox;
  outbox = [];
  let line: string[] = [];
  let length = 0;
  const end = (): void => {
    if (line.length > 0) channel.say(`${ownMark}[${line.join(',')}]`);
    line = [];
    length = 0;
  };
  try {
    for (const message of messages) {
      const text = JSON.stringify(message);
      if (length + text.length > LONGEST_LINE) end();
      line.push(text);
      length += text.length;
    }
    end();
  } catch (error) {
    giveUp(error);
  }
}

/** Whoever asked would wait for ever: the end of the process tells them, and another one is asked. */
function giveUp(error: unknown): void {
  console.error(`a host of environments cannot go on: ${errorText(error)}`);
  kill();
}

const loadingNow = (module: string): void => {
  say({ is: 'loading', module });
  flush();
};

/** Gradus's own are loaded only where they are asked for: together they take time and memory. */
async function loadAll(module: HostModule): Promise<Loaded[]> {
  if (module === null) {
    const families = (await import(pathToFileURL(FAMILIES_MODULE).href)) as { loadedBuiltIns(): Loaded[] };
    return families.loadedBuiltIns();
  }
  loadingNow(module);
  return loadModule(module);
}

async function load(module: HostModule): Promise<void> {
  try {
    const loaded = await loadAll(module);
    environments = new Map(loaded.map((one) => [one.environment.name, one]));
    const facts = [...environments.values()].map(({ environment, file }) => {
      loadingNow(file);
      return environmentFactsOf(environment, file);
    });
    foreign = module !== null;
    remember();
    say({ is: 'ready', environments: facts });
  } catch (error) {
    const known =
      error instanceof GradusError ? error : new GradusError('environment', 'module', errorText(error));
    say({ is: 'refused', error: fromError(known) });
  }
}

async function answer({ id, ask }: Extract<ToHost, { is: 'ask' }>): Promise<void> {
  const controller = new AbortController();
  // Every item of the ask listens to the one signal.
  setMaxListeners(0, controller.signal);
  calls.set(id, controller);
  alive ??= setInterval(() => say({ is: 'alive' }), ALIVE_MS);
  const heartbeat = (details?: unknown): void => {
    const text = details === undefined ? undefined : JSON.stringify(details);
    const told =
      text === undefined || text.length > LONGEST_DETAILS ? {} : { details: JSON.parse(text) as null };
    beat({ is: 'heartbeat', id, ...told });
  };
  const known = environments.get(ask.environment);
  const answers = known
    ? await began.run(id, () =>
        serve(known, ask, { signal: controller.signal, heartbeat, preparing: notePreparing }),
      )
    : ask.items.map(() => ({ error: fromError(notThere(ask.environment)) }));
  calls.delete(id);
  if (calls.size === 0) {
    clearInterval(alive);
    alive = undefined;
  }
  say({ is: 'answer', id, answers });
}

/** A worker knows an environment that this process does not: its module gave another one when it was loaded again. */
const notThere = (name: string): GradusError =>
  new GradusError(
    'environment',
    'module',
    `The environment ${name} was not there when its module was loaded again: let the module give the same each time`,
  );

// What nobody waits for any more must not end the calls of others: it is told, and they go on.
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    say({ is: 'late-error', id: began.getStore() ?? null, message: errorText(error) });
  });
}
const channel = new Channel(new Socket({ fd: CHANNEL }), {
  message: (value) => {
    for (const message of value as ToHost[]) {
      if (message.is === 'load') {
        ownMark = message.mark;
        void load(message.module);
      } else if (message.is === 'variables') {
        Object.assign(process.env, message.values);
        remember();
      } else if (message.is === 'ask') answer(message).catch(giveUp);
      else calls.get(message.id)?.abort(new Error('called off'));
    }
  },
  nonsense: giveUp,
});
