import type { DiversityRule } from '../schema/reward-rules.ts';
import { callByCall } from '../episode/call-by-call.ts';
import { canonicalJson } from '../json/canonical-json.ts';
import { canonicalAnswer } from './rule.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';

/** Characters that `similarity` compares; what differs beyond them counts as alike. */
const COMPARED = 500;
/** Samples of a task that `similarity` compares each with each other, at most. */
export const MOST_COMPARED = 256;

/**
 * Pays a sample for being unlike the others of its task. `count`: 1 / √n, where n samples do the same (count-based
 * exploration, Bellemare et al. 2016; over the answers of a batch, Song et al. 2025). `similarity`: 1 less the mean
 * similarity to the others, by the trigrams that two texts share (Jaccard). Of the `answer`, or of the tool `calls` in
 * their order. What has no answer has none that is new.
 */
export function diversityScores({ of, by }: DiversityRule, samples: readonly JudgedSample[]): RuleVerdict[] {
  const lines = samples.map(of === 'answer' ? canonicalAnswer : callsOf);
  const known = lines.filter((text): text is string => text !== null);
  const counts = new Map<string, number>();
  for (const text of known) counts.set(text, (counts.get(text) ?? 0) + 1);
  const unlikeness = by === 'similarity' ? meanUnlikeness(counts) : null;
  return lines.map((text) => {
    if (text === null) return { score: 0, evidence: 'no answer' };
    if (unlikeness) {
      const score = unlikeness.get(text)!;
      return { score, evidence: `${score.toFixed(3)} unlike the other ${known.length - 1}` };
    }
    const same = counts.get(text)!;
    return { score: 1 / Math.sqrt(same), evidence: `${same} of ${known.length} samples` };
  });
}

const callsOf = ({ episode }: JudgedSample): string =>
  episode.turns
    .flatMap(callByCall)
    .flatMap(({ action }) =>
      action.kind === 'call' ? [`${action.call.name} ${canonicalJson(action.call.arguments)}`] : [],
    )
    .join('\n');

/** Of each text to all the other samples, among whom texts come several times. 1 where there is no other. */
function meanUnlikeness(counts: ReadonlyMap<string, number>): Map<string, number> {
  const texts = [...counts].map(([text, count]) => ({ text, count, grams: trigramsOf(text) }));
  // A sample is not compared with itself, but with the others that say the same.
  const alike = texts.map(({ count }) => count - 1);
  // Places of the texts so far that have it: most have little in common, and are not gone through pair by pair.
  const having = new Map<string, number[]>();
  texts.forEach((one, i) => {
    const shared = new Uint32Array(i);
    for (const gram of one.grams) {
      const places = having.get(gram);
      if (!places) having.set(gram, [i]);
      else {
        for (const place of places) shared[place]!++;
        places.push(i);
      }
    }
    shared.forEach((common, j) => {
      const other = texts[j]!;
      const similarity = common / (one.grams.size + other.grams.size - common);
      alike[i]! += other.count * similarity;
      alike[j]! += one.count * similarity;
    });
  });
  const others = texts.reduce((sum, { count }) => sum + count, 0) - 1;
  return new Map(
    texts.map(({ text }, i) => [text, others === 0 ? 1 : Math.min(1, Math.max(0, 1 - alike[i]! / others))]),
  );
}

function trigramsOf(text: string): Set<string> {
  const padded = `\u0002\u0002${text.slice(0, COMPARED)}\u0003`;
  return new Set(Array.from({ length: padded.length - 2 }, (_, i) => padded.slice(i, i + 3)));
}
