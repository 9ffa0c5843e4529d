import { messageOf } from '../../core/errors.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { EpisodeIndex } from './episode-index.ts';
import type { IndexProgress } from './episode-index.ts';
import { FactCache } from './fact-cache.ts';
import { queryWords } from './find-query.ts';
import type { Query } from './find-query.ts';
import { Remembered } from '../remembered.ts';
import type { LastKnown } from '../remembered.ts';
import { searchText } from './search-text.ts';
import type { TextHit } from './search-text.ts';

/** Work that goes on while nobody waits for it, as it stands. */
export interface Job {
  at: IndexProgress;
  state: 'goes on' | 'done' | 'ended' | 'failed';
  /** Why it failed. */
  problem: string | null;
}

export interface TextSearch extends Job {
  hits: TextHit[];
  /** Groups that cannot be read, and why. */
  damaged: string[];
  /** There may be more: so many are shown. */
  full: boolean;
}

export const MOST_HITS = 200;
/** Who looks again within this time sees the same steps. */
const FRESH_MS = 2000;
/** Runs whose steps are remembered, and searches. */
const MOST_RUNS = 16;
const MOST_SEARCHES = 8;
/** At a time: each reads what a disk and a network give. */
const MOST_BUILDS = 2;
const MOST_RUNNING_SEARCHES = 2;
/** How often a search that waits for facts looks whether anybody still waits for it. */
const LOOK_MS = 200;
/** A search that nobody has looked at for so long is for nobody. */
const UNWATCHED_MS = 60_000;

/**
 * What Find does for pages: which steps runs have, facts that are being read, texts that are being looked for. A build
 * goes on until it is done; a search ends when nobody looks any more, and a later one begins anew.
 */
export class FindJobs {
  private readonly store: ObjectStore;
  private readonly cache: FactCache;
  private readonly unwatchedMs: number;
  private readonly indexes = new Map<string, Remembered<EpisodeIndex>>();
  private readonly builds = new Map<string, { job: Job; ended: Promise<void> }>();
  private readonly searches = new Map<string, Running>();

  constructor(store: ObjectStore, { cache = new FactCache(), unwatchedMs = UNWATCHED_MS } = {}) {
    this.store = store;
    this.cache = cache;
    this.unwatchedMs = unwatchedMs;
  }

  /** The steps of a run, and as of when, where the store is away. */
  index(run: string): Promise<LastKnown<EpisodeIndex>> {
    const known =
      this.indexes.get(run) ??
      new Remembered(() => EpisodeIndex.open(this.store, run, { cache: this.cache }), FRESH_MS);
    // The one that was looked at last stands last.
    this.indexes.delete(run);
    this.indexes.set(run, known);
    for (const [oldest] of this.indexes) if (this.indexes.size > MOST_RUNS) this.indexes.delete(oldest);
    return known.look();
  }

  /** Has what is missing read, unless it is being read already, and waits for it a little. */
  async build(index: EpisodeIndex, patienceMs: number): Promise<Job> {
    const { run } = index;
    let build = this.builds.get(run);
    if (!build || build.job.state !== 'goes on') {
      const running = [...this.builds.values()].filter(({ job }) => job.state === 'goes on');
      if (running.length >= MOST_BUILDS) {
        await soon(Promise.race(running.map(({ ended }) => ended)), patienceMs);
        return { at: { done: 0, total: index.size }, state: 'goes on', problem: null };
      }
      const job: Job = { at: { done: 0, total: index.size }, state: 'goes on', problem: null };
      const ended = index.build({ progress: (at) => (job.at = at) }).then(
        () => void (job.state = 'done'),
        (error: unknown) => {
          job.state = 'failed';
          job.problem = messageOf(error);
        },
      );
      build = { job, ended };
      this.builds.set(run, build);
    }
    await soon(build.ended, patienceMs);
    return build.job;
  }

  /** The search for a text: begun where it does not go on, and waited for a little. */
  async search(
    index: EpisodeIndex,
    query: Query & { text: string },
    patienceMs: number,
  ): Promise<TextSearch> {
    const name = nameOf(index.run, query);
    let search = this.searches.get(name);
    const isOld = search?.job.state === 'done' && search.size !== index.size;
    if (!search || isOld || search.isStopped() || search.job.state === 'failed') {
      for (const [other, { job }] of this.searches) {
        if (this.searches.size >= MOST_SEARCHES && job.state !== 'goes on') this.searches.delete(other);
      }
      const running = [...this.searches.values()].filter(({ job }) => job.state === 'goes on');
      if (running.length >= MOST_RUNNING_SEARCHES) running[0]!.stop();
      search = this.begin(index, query);
      this.searches.set(name, search);
    }
    search.watch();
    await soon(search.ended, patienceMs);
    return search.job;
  }

  /** Ends the search for a text. */
  endSearch(run: string, query: Query): void {
    this.searches.get(nameOf(run, query))?.stop();
  }

  private async allRead(index: EpisodeIndex, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const { state, problem } = await this.build(index, LOOK_MS);
      if (state === 'failed') throw new Error(problem ?? 'the facts of episodes could not be read');
      if (state === 'done') return;
    }
  }

  private begin(index: EpisodeIndex, query: Query & { text: string }): Running {
    const job: TextSearch = {
      at: { done: 0, total: 0 },
      state: 'goes on',
      problem: null,
      hits: [],
      full: false,
      damaged: [],
    };
    const stopping = new AbortController();
    const stop = (): void => stopping.abort(new Error('nobody waits for it'));
    const timer = setTimeout(stop, this.unwatchedMs).unref();
    const run = async (): Promise<void> => {
      const { signal } = stopping;
      // An episode whose facts are not read yet is found by nothing.
      await this.allRead(index, signal);
      for await (const hit of searchText(this.store, index, query, {
        signal,
        progress: (at) => (job.at = at),
        damaged: job.damaged,
      })) {
        job.hits.push(hit);
        if (job.hits.length < MOST_HITS) continue;
        job.full = true;
        break;
      }
    };
    const ended = run()
      .then(
        () => void (job.state = 'done'),
        (error: unknown) => {
          job.state = stopping.signal.aborted ? 'ended' : 'failed';
          job.problem = messageOf(error);
        },
      )
      .finally(() => clearTimeout(timer));
    return {
      job,
      size: index.size,
      ended,
      stop,
      isStopped: () => stopping.signal.aborted,
      watch: () => void timer.refresh(),
    };
  }
}

interface Running {
  job: TextSearch;
  /** Steps that there were when it began: of a run that goes on there are more later. */
  size: number;
  ended: Promise<void>;
  stop(): void;
  /** It has ended, or is about to. */
  isStopped(): boolean;
  watch(): void;
}

const nameOf = (run: string, query: Query): string =>
  JSON.stringify([run, ...queryWords({ ...query, sort: 'step', order: 'ascending' })]);

async function soon(work: Promise<void>, patienceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const later = new Promise<void>((resolve) => (timer = setTimeout(resolve, patienceMs)));
  await Promise.race([work, later]);
  clearTimeout(timer);
}
