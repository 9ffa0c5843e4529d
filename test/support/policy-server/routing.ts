import type { SampledPiece } from '../../../store/rollout/sampled-pieces.ts';

/** A piece with its place in the run. */
export interface PlacedPiece {
  stage: string;
  step: number;
  /** All samples of a task have its prompt as their prefix. */
  task: string;
  piece: SampledPiece;
}

/** `runs/NAME/parts/STAGE/STEP/GROUP/sampled-EPISODE-LENGTH.json`; a group has so many samples of each task, one after the other. */
export function placeOf(key: string, samples: number): Omit<PlacedPiece, 'piece'> {
  const [, , , stage, step, group, name] = key.split('/');
  const episode = Number(name!.split('-')[1]);
  return {
    stage: stage!,
    step: Number(step),
    task: `${step!}/${group!}/${Math.floor(episode / samples)}`,
  };
}

/**
 * How requests were shared out over two servers: pieces of each, and which part of the pieces of a task its own server has,
 * in the mean over tasks. `byChance` is that part if each request went to a server as often as all did, whatever its prefix.
 */
export function routingOf(pieces: readonly PlacedPiece[]) {
  const servers = piecesByServer(pieces);
  const first = [...servers.values()][0]! / pieces.length;
  const byTask = new Map<string, string[]>();
  for (const { task, piece } of pieces) byTask.set(task, [...(byTask.get(task) ?? []), piece.served!.server]);
  let [own, byChance] = [0, 0];
  for (const of of byTask.values()) {
    own += Math.max(...countOf(of).values()) / of.length;
    byChance += largestShare(of.length, first);
  }
  return {
    pieces: Object.fromEntries(servers),
    tasks: byTask.size,
    own: own / byTask.size,
    byChance: byChance / byTask.size,
  };
}

/** E max(k, n - k) / n for k of the binomial distribution. */
function largestShare(n: number, p: number): number {
  let [probability, sum] = [(1 - p) ** n, 0];
  for (let k = 0; k <= n; k++) {
    sum += (probability * Math.max(k, n - k)) / n;
    probability *= ((n - k) / (k + 1)) * (p / (1 - p));
  }
  return sum;
}

export const piecesByServer = (pieces: readonly PlacedPiece[]): Map<string, number> =>
  countOf(pieces.map(({ piece }) => piece.served!.server));

function countOf(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
