import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Json } from '../../core/json/json.ts';
import { messageOf } from '../../core/errors.ts';
import type { SubjectBlock } from '../../environments/contract/environment.ts';
import { EnvironmentHost } from '../../environments/host/environment-host.ts';
import type { EnvironmentHostOptions } from '../../environments/host/environment-host.ts';
import { sha256Hex } from '../../store/digest.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

/** A subject as its environment shows it. */
export interface Presentation {
  /** By which its drawings are asked for. */
  key: string;
  /** Empty where the environment shows nothing: the subject's JSON is all there is. */
  blocks: readonly SubjectBlock[];
  /** Why there are none although there should be; null where all is well. */
  problem: string | null;
}

/** Who looks at a page waits no longer, whatever users' code does, milliseconds. */
const PATIENCE_MS = 8000;
/** What failed is tried again after so long, milliseconds. */
const AGAIN_MS = 30_000;
const MOST_PRESENTATIONS = 256;

interface CachedPresentation {
  presentation: Promise<Presentation>;
  done: Presentation | null;
  at: number;
}

/**
 * Shows subjects as their environments do. Users' modules are loaded beside this process, when the first subject is to be
 * shown; a process that dies is replaced when the next one is.
 */
export class Presenter {
  private readonly options: EnvironmentHostOptions;
  private host: Promise<EnvironmentHost> | null = null;
  private readonly kept = new Map<string, CachedPresentation>();

  private readonly patienceMs: number;

  constructor(options: EnvironmentHostOptions, { patienceMs = PATIENCE_MS } = {}) {
    this.options = options;
    this.patienceMs = patienceMs;
  }

  /** Never throws: what goes wrong is said. */
  async present(environment: string, subject: Json): Promise<Presentation> {
    const key = sha256Hex(new TextEncoder().encode(canonicalJson([environment, subject])));
    const known = this.kept.get(key);
    if (known && (known.done?.problem == null || performance.now() - known.at < AGAIN_MS)) {
      this.keep(key, known);
      return known.presentation;
    }
    const entry: CachedPresentation = {
      presentation: this.ask(key, environment, subject),
      done: null,
      at: 0,
    };
    this.keep(key, entry);
    entry.done = await entry.presentation;
    entry.at = performance.now();
    return entry.done;
  }

  /** What is shown of it within so many milliseconds, null where that takes longer: whoever looks again later has it. */
  async presentSoon(environment: string, subject: Json, milliseconds: number): Promise<Presentation | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), milliseconds);
    });
    try {
      return await Promise.race([this.present(environment, subject), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A drawing of what was shown not long ago; null where that is forgotten: the page that has it is loaded again. */
  drawing(key: string, block: number): string | null {
    const shown = this.kept.get(key)?.done?.blocks[block];
    return shown?.kind === 'svg' ? shown.svg : null;
  }

  async close(): Promise<void> {
    const { host } = this;
    this.host = null;
    // One that could not be opened is no host to be closed.
    await host?.then(
      (opened) => opened.close(),
      () => undefined,
    );
  }

  private keep(key: string, entry: CachedPresentation): void {
    this.kept.delete(key);
    this.kept.set(key, entry);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MOST_PRESENTATIONS) break;
      this.kept.delete(oldest);
    }
  }

  private async ask(key: string, environment: string, subject: Json): Promise<Presentation> {
    try {
      return { key, blocks: await this.blocksOf(environment, subject), problem: null };
    } catch (error) {
      return { key, blocks: [], problem: messageOf(error) };
    }
  }

  private async blocksOf(name: string, subject: Json): Promise<readonly SubjectBlock[]> {
    const { environments } = await inTime(
      this.opened(),
      this.patienceMs,
      'the environments are still being loaded',
    );
    const environment = environments.get(name);
    if (!environment) {
      throw new Error(
        `the environment ${name} is not known here: start the dashboard with GRADUS_ENVIRONMENTS as the workers have it`,
      );
    }
    if (!environment.presents) return [];
    const signal = timeoutSignal(this.patienceMs);
    return environment.present(subject, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      throw new Error(`present() of ${name} showed nothing in ${this.patienceMs / 1000} s`, { cause: error });
    });
  }

  private opened(): Promise<EnvironmentHost> {
    if (this.host) return this.host;
    const host = EnvironmentHost.open(this.options);
    this.host = host;
    // A module that was mended is loaded again, though not at once.
    host.catch(() => {
      setTimeout(() => {
        if (this.host === host) this.host = null;
      }, AGAIN_MS).unref();
    });
    return host;
  }
}

/** Loading goes on: whoever asks later has it. */
async function inTime<T>(work: Promise<T>, patienceMs: number, late: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${late}: look again in a moment`)), patienceMs);
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
