import { inTurn } from '../../sandbox/in-turn.ts';

/** What came of judging a patch. */
export interface Judged<Verdict> {
  verdict: Verdict;
  /** Whether a limit ended it: on a machine that is less busy it may be another one. */
  limited: boolean;
}

/** For whom a patch is judged: the id of its episode, which is the same when it asks again, and who may give up waiting. */
export interface JudgementCaller {
  id: string;
  signal: AbortSignal;
}

const MOST_JUDGEMENTS = 10_000;

/**
 * Verdicts of this process on patches, each in its turn. What has begun is seen to its end and kept, also when nobody waits
 * any longer: an episode that asks again, because the activity that it is in was over its time, finds it. So each attempt
 * gets further, however many wait and however long tests take. Samples of a group, who often come to the same patch, share a
 * verdict; one that a limit has spoken is of that episode alone.
 */
export class Judgements<Verdict extends object> {
  readonly #known = new Map<string, Verdict>();
  readonly #running = new Map<string, Promise<Verdict>>();

  /** The verdict on what `key` names. Rejects with the signal's reason where it has not begun by then. */
  async of(
    key: string,
    { id, signal }: JudgementCaller,
    judge: () => Promise<Judged<Verdict>>,
  ): Promise<Verdict> {
    const own = `${key} ${id}`;
    const found = (): Verdict | Promise<Verdict> | undefined =>
      this.#known.get(key) ?? this.#known.get(own) ?? this.#running.get(own);
    return found() ?? inTurn(signal, async () => found() ?? this.#begin(key, own, judge));
  }

  #begin(key: string, own: string, judge: () => Promise<Judged<Verdict>>): Promise<Verdict> {
    const verdict = judge()
      .then((judged) => {
        this.#remember(judged.limited ? own : key, judged.verdict);
        return judged.verdict;
      })
      .finally(() => this.#running.delete(own));
    this.#running.set(own, verdict);
    return verdict;
  }

  #remember(key: string, verdict: Verdict): void {
    if (this.#known.size >= MOST_JUDGEMENTS) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(key, verdict);
  }
}
