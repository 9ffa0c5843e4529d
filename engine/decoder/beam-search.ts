import type { BeamsSpec } from '../../core/schema/beams.ts';
import type { Alternative } from '../policy.ts';

/** A turn that is searched for. `seat` is what has fed its tokens but for the last. */
export interface Beam<Seat> {
  group: number;
  tokens: number[];
  /** Log-probability in nats of each token, without penalties, and their sum. */
  logprobs: number[];
  total: number;
  seat: Seat;
}

export interface FinishedBeam<Seat> extends Beam<Seat> {
  finish: 'stop' | 'length';
}

/**
 * Diverse beam search (Vijayakumar et al. 2016, arXiv 1610.02424, algorithm 1) for one turn, as arithmetic on log-probs.
 *
 * At each position the groups take their turn, in order. A group extends each of its open beams by each token, and keeps
 * those extensions of which the log-prob of the beam with its token is highest. Of that λ is taken away for each beam of
 * an earlier group which has got the same token at this position (Hamming diversity). The penalty decides at this position
 * alone: a beam's own log-prob is that of the model. So the first group is searched as if it were alone.
 *
 * A group has `width / groups` places. A beam that gets a stop token, or is `limit` tokens long, is finished. It leaves
 * the search and takes its place with it (as in Sutskever et al. 2014, arXiv 1409.3215). A group without places is done.
 *
 * Beams of different lengths are compared by their mean log-prob a token, the stop token included. A turn that ended comes
 * before one that was cut. All sums are float64 in the order of the tokens. Equal candidates rank by their beam, then by
 * log-prob without penalty, then by token id. So the search is a pure function of the log-probs.
 */
export class BeamSearch<Seat> {
  /** By group, and in each the highest first. */
  open: Beam<Seat>[];
  private readonly places: number[];
  private readonly best: (FinishedBeam<Seat> | undefined)[];
  private readonly diversity: number;
  private readonly stopTokens: readonly number[];
  private readonly limit: number;

  /** `root` has fed everything before the turn, which may have `limit` tokens: at least one. */
  constructor(
    { width, groups, diversity }: BeamsSpec,
    { stopTokens, limit, root }: { stopTokens: readonly number[]; limit: number; root: Seat },
  ) {
    this.diversity = diversity;
    this.stopTokens = stopTokens;
    this.limit = limit;
    this.places = Array.from({ length: groups }, () => width / groups);
    this.best = this.places.map(() => undefined);
    this.open = this.places.map((_, group) => ({ group, tokens: [], logprobs: [], total: 0, seat: root }));
  }

  /**
   * Takes one position. `likeliest` has of each seat at least the `width` likeliest tokens, likeliest first: of these a group
   * takes `width / groups` at most, and others have penalties for no more than the rest. Gives the beams that have
   * finished and are the best of their group so far.
   */
  grow(likeliest: ReadonlyMap<Seat, readonly Alternative[]>): FinishedBeam<Seat>[] {
    const before = this.open;
    const had = new Map<number, number>();
    const better: FinishedBeam<Seat>[] = [];
    this.open = [];
    for (const group of this.places.keys()) {
      const candidates = before
        .filter((beam) => beam.group === group)
        .flatMap((beam) =>
          likeliest.get(beam.seat)!.map(({ token, logprob }) => {
            const total = beam.total + logprob;
            return { beam, token, logprob, total, rank: total - this.diversity * (had.get(token) ?? 0) };
          }),
        )
        // Stable: where ranks are equal, the order is that of beams, and of tokens in each.
        .toSorted((a, b) => b.rank - a.rank)
        .slice(0, this.places[group]);
      for (const { beam, token, logprob, total } of candidates) {
        had.set(token, (had.get(token) ?? 0) + 1);
        const grown = {
          ...beam,
          tokens: [...beam.tokens, token],
          logprobs: [...beam.logprobs, logprob],
          total,
        };
        const finish = this.finishOf(grown);
        if (finish === undefined) {
          this.open.push(grown);
          continue;
        }
        this.places[group]!--;
        const finished = { ...grown, finish };
        if (!isBetter(finished, this.best[group])) continue;
        this.best[group] = finished;
        better.push(finished);
      }
    }
    return better.filter((beam) => this.best[beam.group] === beam);
  }

  get over(): boolean {
    return this.open.length === 0;
  }

  /** The best finished beam of a group, or without one of all. */
  chosen(group?: number): FinishedBeam<Seat> {
    if (group !== undefined) return this.best[group]!;
    return this.best.reduce((best, beam) => (isBetter(beam!, best) ? beam : best))!;
  }

  private finishOf({ tokens }: Pick<Beam<Seat>, 'tokens'>): FinishedBeam<Seat>['finish'] | undefined {
    if (this.stopTokens.includes(tokens.at(-1)!)) return 'stop';
    return tokens.length >= this.limit ? 'length' : undefined;
  }
}

type Ranked = Pick<FinishedBeam<unknown>, 'finish' | 'total' | 'tokens'>;

function isBetter(beam: Ranked, than: Ranked | undefined): boolean {
  if (than === undefined) return true;
  if (beam.finish !== than.finish) return beam.finish === 'stop';
  return beam.total / beam.tokens.length > than.total / than.tokens.length;
}
