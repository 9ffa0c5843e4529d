import type { z } from 'zod';
import { objectsOf, refusalOfSpec, schemasAt, showPath } from '../core/schema/strict.ts';
import type { Path, SpecProblem } from '../core/schema/strict.ts';

/**
 * Names of fields in other trainers, and what the spec calls the same thing: same meaning, same unit. In camelCase;
 * snake_case is read too. A name holds where the object has the field and none of that name (docs/adr/0060).
 */
export const OTHER_NAMES: Readonly<Record<string, string>> = {
  // TRL: GRPOConfig, DPOConfig, SFTConfig, KTOConfig, PPOConfig
  epsilon: 'clipRatioLow',
  epsilonHigh: 'clipRatioHigh',
  lossType: 'variant',
  numPpoEpochs: 'numIterations',
  klCoef: 'klCoefficient',
  lam: 'lambda',
  cliprangeValue: 'valueClip',
  maxCompletionLength: 'maxCompletionTokens',
  maxGradNorm: 'maxGradientNorm',
  warmupSteps: 'warmupUpdates',
  adamBeta1: 'beta1',
  adamBeta2: 'beta2',
  adamEpsilon: 'epsilon',
  // PEFT's LoraConfig, and TRL's ModelConfig
  r: 'rank',
  loraR: 'rank',
  loraAlpha: 'alpha',
  loraTargetModules: 'targetModules',
  useRslora: 'rsLora',
  // verl
  n: 'numGenerations',
  ppoEpochs: 'numIterations',
  klLossCoef: 'beta',
  entropyCoeff: 'entropyBonus',
  criticWarmup: 'pretrainingSteps',
  gradClip: 'maxGradientNorm',
  lr: 'learningRate',
  maxAssistantTurns: 'maxTurns',
  maxResponseLength: 'maxCompletionTokens',
  // OpenRLHF
  nSamplesPerPrompt: 'numGenerations',
  rolloutBatchSize: 'groupsPerStep',
  initKlCoef: 'klCoefficient',
  lambd: 'lambda',
  maxNorm: 'maxGradientNorm',
  maxEpochs: 'numIterations',
};

/**
 * They mean something else where no ratio is clipped on both sides: TRL's CISPO clips at epsilon_high itself, not at 1 +
 * epsilon_high, and the beta of preferences is no weight of a KL.
 */
const OF_CLIPPED_RATIOS: ReadonlySet<string> = new Set(['epsilonHigh', 'klLossCoef']);

const camelCase = (name: string): string =>
  name.replace(/(?<=[a-z0-9])_([a-z0-9])/gu, (_, letter: string) => letter.toUpperCase());

/** What a field is called here; null where its name says nothing. */
function nameHere(name: string, fields: ReadonlySet<string>): string | null {
  const camel = camelCase(name);
  if (fields.has(camel)) return camel;
  if (!Object.hasOwn(OTHER_NAMES, camel)) return null;
  const here = OTHER_NAMES[camel]!;
  const isOther = OF_CLIPPED_RATIOS.has(camel) && !fields.has('clipRatioLow');
  return fields.has(here) && !isOther ? here : null;
}

/**
 * What was written, with the spec's own names of fields. `hints` are one line for each that had another.
 * Throws GradusError('spec', 'invalid'), not retryable, where two names of the same field are written.
 */
export function withOwnNames(
  schema: z.core.$ZodType,
  written: unknown,
  what: string,
): { written: unknown; hints: string[] } {
  const hints: string[] = [];
  const problems: SpecProblem[] = [];
  const own = named(schema, written, [], (path, name, here, twice) => {
    if (twice) {
      problems.push({
        path: [...path, name],
        message: `is another name of ${here}, which is written too: leave one out`,
      });
    } else hints.push(`${showPath([...path, name], what)} is read as ${here}`);
  });
  if (problems.length > 0) throw refusalOfSpec(what, problems);
  return { written: hints.length === 0 ? written : own, hints };
}

type Found = (path: Path, name: string, here: string, twice: boolean) => void;

function named(schema: z.core.$ZodType, value: unknown, path: Path, found: Found): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one, i) => below(schema, value, i, one, path, found));
  const fields = new Set(objectsOf(schema, value).flatMap(({ shape }) => Object.keys(shape)));
  const own: [string, unknown][] = [];
  const taken = new Set(Object.keys(value).filter((name) => fields.has(name)));
  for (const [name, one] of Object.entries(value)) {
    const here = fields.has(name) ? null : nameHere(name, fields);
    if (here !== null) {
      found(path, name, here, taken.has(here));
      taken.add(here);
    }
    own.push([here ?? name, below(schema, value, here ?? name, one, path, found)]);
  }
  // No assignment: "__proto__" is a name like another, and is refused as one.
  return Object.fromEntries(own);
}

function below(
  schema: z.core.$ZodType,
  value: object,
  part: string | number,
  one: unknown,
  path: Path,
  found: Found,
): unknown {
  const [inner] = schemasAt(schema, value, [part]);
  return inner === undefined ? one : named(inner, one, [...path, part], found);
}
