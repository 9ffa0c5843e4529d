import type { PreferenceSpec } from '../../core/algorithms/preference.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { invalidData } from '../../core/json/lines.ts';
import { givenSequence } from './given-sequence.ts';
import type { PlacedLine, WriterFor } from './given-sequence.ts';

// What a line is to the method that learns from it: something to imitate, a pair, or an example that is good or bad.

export type Prefers = PreferenceSpec['kind'];

/** The sequences of a line: one, or the two of a pair. Throws GradusError('spec', 'invalid-data') with file and line. */
export function givenExample(
  placed: PlacedLine,
  writerFor: WriterFor,
  room: number,
  prefers: Prefers | undefined,
): TrainingSample[] {
  if (prefers === 'dpo') return pairOf(placed, writerFor, room);
  const { where, line } = placed;
  if (line.kind !== 'demonstration')
    throw invalidData(
      where,
      prefers === 'kto'
        ? 'is a pair, and kto learns from single examples: choose dpo, or give each side as "prompt", "completion" and "label"'
        : 'is a preference, and this stage imitates: give "messages", or "prompt" and "completion", or let the stage have an algorithm { "kind": "dpo" }',
    );
  const { label } = line;
  if (prefers === 'kto') {
    if (label === undefined)
      throw invalidData(where, 'has no "label", by which kto learns: give true where it is good, else false');
    refuseWeight(placed, prefers);
    return [labelled(givenSequence({ where, ...line }, writerFor, room), label ? 1 : -1)];
  }
  if (label === false)
    throw invalidData(
      where,
      'is labelled false, and this stage imitates: leave it out, or let the stage have an algorithm { "kind": "kto" }',
    );
  return [givenSequence({ where, ...line }, writerFor, room)];
}

function pairOf(placed: PlacedLine, writerFor: WriterFor, room: number): TrainingSample[] {
  const { where, line } = placed;
  if (line.kind !== 'preference')
    throw invalidData(where, 'is no pair, from which dpo learns: give "prompt", "chosen" and "rejected"');
  refuseWeight(placed, 'dpo');
  const { prompt, tools } = line;
  return (['chosen', 'rejected'] as const).map((side) => {
    const messages = [...prompt, ...line[side]];
    const sequence = givenSequence(
      { where: `${where}, ${side}`, messages, tools, weight: 1 },
      writerFor,
      room,
    );
    return labelled(sequence, side === 'chosen' ? 1 : -1);
  });
}

function refuseWeight({ where, line }: PlacedLine, prefers: Prefers): void {
  if (line.weight !== 1)
    throw invalidData(where, `has a weight, and ${prefers} weighs all lines alike: leave it out`);
}

/** With the advantages that samples have which an rl stage prefers, or does not. */
const labelled = (sequence: TrainingSample, label: 1 | -1): TrainingSample => ({
  ...sequence,
  streams: { ...sequence.streams, advantages: sequence.mask.map((bit) => bit * label) },
  label,
});

/**
 * The sequences of a round, with what must stay together. Each example of `kto` has its completion once more, behind the
 * prompt of the next example that has another one: what z₀ is estimated by (Ethayarajh et al. 2024, arXiv 2402.01306,
 * section 4.1). One that takes more than `room` tokens there is left out.
 */
export function numbered(
  examples: readonly TrainingSample[][],
  room: number,
  prefers: Prefers | undefined,
): TrainingSample[] {
  if (prefers === undefined) return examples.flat();
  if (prefers === 'dpo') return examples.flatMap((pair, i) => pair.map((one) => ({ ...one, pair: i })));
  const all = examples.flat();
  const prompts = all.map(({ tokens, mask }) => tokens.slice(0, mask.indexOf(1)));
  const others = nextOther(prompts.map((prompt) => prompt.join(' ')));
  return all.flatMap((example, i) => {
    const other = others[i] ?? null;
    const own = { ...example, together: i };
    if (other === null) return [own];
    const behind = behindPrompt(example, prompts[i]!.length, prompts[other]!);
    return behind.tokens.length > room ? [own] : [own, { ...behind, together: i }];
  });
}

/** Of each place that of the next text which differs, around the end; null where all are equal. */
function nextOther(texts: readonly string[]): (number | null)[] {
  const { length } = texts;
  const next: (number | null)[] = texts.map(() => null);
  for (let i = 2 * length - 1; i >= 0; i--) {
    const after = (i + 1) % length;
    next[i % length] = texts[after] === texts[i % length] ? next[after]! : after;
  }
  return next;
}

function behindPrompt(example: TrainingSample, start: number, prompt: readonly number[]): TrainingSample {
  const nothing = prompt.map(() => 0);
  const zeros = [...nothing, ...example.tokens.slice(start).map(() => 0)];
  return {
    tokens: [...prompt, ...example.tokens.slice(start)],
    mask: [...nothing, ...example.mask.slice(start)],
    streams: { advantages: zeros, samplerLogprobs: zeros },
    label: 0,
  };
}
