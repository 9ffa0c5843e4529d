import { demonstrationSequences } from '../../activities/training/demonstrations.ts';
import { describeTool } from '../../environments/host/facts.ts';
import { inThisProcess } from '../../environments/host/hosted-environment.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { tokenizerConfigOf } from '../../engine/dialect/checkpoint-dialect.ts';
import { SPECIAL_TOKENS } from '../../engine/dialect/gradus/special-tokens.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../engine/tokenizer/train-bpe.ts';
import { demonstrationCorpus } from '../../activities/training/corpus.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { MODELS } from './models.ts';

/** How an episode goes: its prompt, and for each turn how much is sampled and what is read after it. */
export interface Script {
  prefix: number[];
  turns: { sampled: number; observation: number[] }[];
}

const calculator = calculatorEnvironment();

/** The tokenizer that the demo learns. */
export const calculatorTokenizer = (): string =>
  JSON.stringify(trainTokenizer(demonstrationCorpus([calculator], 400), 512, SPECIAL_TOKENS));

/** Episodes of the calculator's levels 1 to 3 as the expert plays them. */
export async function calculatorScripts(count: number, signal: AbortSignal): Promise<Script[]> {
  const json = calculatorTokenizer();
  const files = newModelFiles(MODELS['1M'], json);
  const dialect = openDialect(
    Tokenizer.fromJson(json),
    tokenizerConfigOf(files),
    calculator.tools.map(describeTool),
  );
  const arms = [1, 2, 3].map((level) => ({ environment: calculator.name, level }));
  const sequences = await demonstrationSequences(
    inThisProcess([calculator]),
    () => dialect,
    { arms, count: 4 * count, round: 1, seed: 1 },
    signal,
  );
  // Of a mistake only the last turn is masked in, so its other turns cannot be told from what was read.
  return sequences
    .filter(({ streams }) => streams.advantages!.every((weight) => weight >= 0))
    .slice(0, count)
    .map(scriptOf);
}

function scriptOf({ tokens, mask }: TrainingSample): Script {
  const next = (bit: number, from: number): number => {
    const found = mask.indexOf(bit, from);
    return found < 0 ? mask.length : found;
  };
  const first = next(1, 0);
  const turns: Script['turns'] = [];
  for (let at = first; at < tokens.length;) {
    const read = next(0, at);
    const written = next(1, read);
    turns.push({ sampled: read - at, observation: tokens.slice(read, written) });
    at = written;
  }
  return { prefix: tokens.slice(0, first), turns };
}

export const scriptLength = ({ prefix, turns }: Script): number =>
  prefix.length + turns.reduce((sum, turn) => sum + turn.sampled + turn.observation.length, 0);
