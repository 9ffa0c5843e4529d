import { predict } from '../../core/ladder/calibration.ts';
import type { Calibration } from '../../core/ladder/calibration.ts';
import { lineOfBasis } from '../../core/ladder/learned-tier.ts';
import type { WantedVerdict } from '../../core/ladder/requests.ts';
import { GradusError } from '../../core/errors.ts';
import { archivePrefix } from '../../store/keys.ts';
import { wishes } from '../../store/ladder/ladder-codecs.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { LedgerBook } from './ledger-book.ts';

/** What a budget had no room for, without its subject, which may be large. */
export interface Deferred {
  verifier: string;
  version: string;
  digest: string;
  environment: string;
  /** What the verifier is expected to say, by all that the run has learnt since. */
  value: number;
  basis: WantedVerdict['basis'];
}

export interface DeferredView {
  /** Best value first. */
  best: Deferred[];
  count: number;
  /** Different subjects that were deferred and that somebody has judged since. */
  judged: number;
}

const PAGES_AT_ONCE = 16;

/**
 * What a run deferred and has heard no verdict of since: as sweeps see it, with the ledger in place of a question for each
 * of them. Pages never change, and are read once.
 */
export class DeferredBook {
  private readonly pages = new Map<string, Deferred[]>();
  private readonly store: ObjectStore;
  private readonly run: string;

  constructor(store: ObjectStore, run: string) {
    this.store = store;
    this.run = run;
  }

  async view(
    ledger: LedgerBook,
    calibrations: readonly Calibration[] | null,
    { most = 50 }: { most?: number } = {},
  ): Promise<DeferredView> {
    await this.refresh();
    const open = new Map<string, Deferred>();
    const judged = new Set<string>();
    // A later page supersedes an earlier one.
    for (const key of [...this.pages.keys()].toSorted()) {
      for (const one of this.pages.get(key)!) {
        const name = `${one.verifier}/${one.version}/${one.digest}`;
        if (ledger.hasHeard(one.verifier, one.digest)) {
          judged.add(name);
          continue;
        }
        const line = one.basis && calibrations && lineOfBasis(one.basis, calibrations);
        const value = line ? predict(line, one.basis!.score).mean : one.value;
        open.set(name, { ...one, value });
      }
    }
    const ordered = [...open.values()].toSorted(
      (a, b) => b.value - a.value || (a.digest < b.digest ? -1 : 1),
    );
    return { best: ordered.slice(0, most), count: ordered.length, judged: judged.size };
  }

  private async refresh(): Promise<void> {
    const listed = await this.store.list(archivePrefix(this.run));
    const fresh = listed.filter(({ key }) => !this.pages.has(key));
    await inParallel(
      fresh,
      async ({ key }) => {
        try {
          this.pages.set(key, ((await this.store.find(key, wishes)) ?? []).map(withoutSubject));
        } catch (error) {
          // One that is damaged hides no other.
          if (!(error instanceof GradusError) || error.retryable) throw error;
          this.pages.set(key, []);
        }
      },
      PAGES_AT_ONCE,
    );
  }
}

const withoutSubject = ({ ask: { request, environment }, value, basis }: WantedVerdict): Deferred => ({
  verifier: request.verifier,
  version: request.version,
  digest: request.digest,
  environment,
  value,
  basis,
});
