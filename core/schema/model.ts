import { z } from 'zod';
import type { CheckpointRef } from '../refs.ts';
import { weightShapes } from '../model/config.ts';
import type { Refuse } from './check.ts';
import { checkpointName, count, present, readCheckpointName } from '../fields.ts';
import { checkDialect, dialectOfSpec, dialectSchema, refusalOfCalls } from './dialect.ts';
import type { DialectSpec } from './dialect.ts';
import { loraSchema } from './lora.ts';
import type { SamplingSpec } from './sampling.ts';

/** What a model from scratch has where the spec says nothing. */
export const MODEL_DEFAULTS = {
  vocabSize: 512,
  hiddenSize: 128,
  intermediateSize: 384,
  layers: 4,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 32,
  maxPositions: 256,
  tieEmbeddings: true,
};

/** What models of a few billion parameters have, generously; `MOST_PARAMETERS` bounds what they make together. */
const MOST = {
  vocabSize: 262_144,
  hiddenSize: 16_384,
  intermediateSize: 65_536,
  layers: 256,
  attentionHeads: 256,
  keyValueHeads: 256,
  headSize: 512,
  maxPositions: 131_072,
};
export const MOST_POSITIONS = MOST.maxPositions;
/** Of a model from scratch: with gradients and moments 16 bytes each. */
const MOST_PARAMETERS = 1e9;

const shape = (field: keyof typeof MOST, what = '') =>
  count(MOST[field], 'import a larger model and name it in model.from', field === 'vocabSize' ? 300 : 1)
    .optional()
    .describe(`${what}${what && ' '}Default ${MODEL_DEFAULTS[field]}.`);

export const modelSchema = z
  .strictObject({
    from: checkpointName
      .optional()
      .describe('Begin with the last checkpoint of that run, or with RUN@STEP; its shape is its own.'),
    dialect: dialectSchema.optional(),
    vocabSize: shape('vocabSize', 'At most; a small corpus may give fewer.'),
    hiddenSize: shape('hiddenSize'),
    intermediateSize: shape('intermediateSize'),
    layers: shape('layers'),
    attentionHeads: shape('attentionHeads'),
    keyValueHeads: shape('keyValueHeads'),
    headSize: shape('headSize'),
    maxPositions: shape('maxPositions', 'Longest sequence in tokens, prompt included.'),
    tieEmbeddings: z.boolean().optional().describe(`Default ${MODEL_DEFAULTS.tieEmbeddings}.`),
    lora: loraSchema,
  })
  .prefault({})
  .describe('A decoder-only transformer: of the Llama family and trained from scratch, or a checkpoint.');

export type WrittenModel = z.output<typeof modelSchema>;

/** A decoder-only transformer of the Llama family, trained from scratch, with a byte-level BPE tokenizer learnt from demonstrations. */
export type ModelSpec = {
  [Field in keyof typeof MODEL_DEFAULTS]: NonNullable<WrittenModel[Field]>;
};

/** Where the first weights come from: random ones, or a checkpoint of an earlier run (an imported model is one). */
export type ModelSource =
  | { kind: 'scratch'; shape: ModelSpec; dialect?: DialectSpec }
  | { kind: 'from'; checkpoint: CheckpointRef; dialect?: DialectSpec };

/** The same before the store was asked which checkpoint that is. `step` null: the last one. */
export type NamedModel =
  | Extract<ModelSource, { kind: 'scratch' }>
  | { kind: 'from'; run: string; step: number | null; dialect?: DialectSpec };

export function modelOf(model: WrittenModel): NamedModel {
  const { from, dialect } = model;
  // What models from scratch speak anyway is not said of them.
  if (from === undefined)
    return {
      kind: 'scratch',
      shape: shapeOf(model),
      ...(dialect?.describeTools && { dialect: dialectOfSpec(dialect) }),
    };
  return {
    kind: 'from',
    ...readCheckpointName(from),
    ...(dialect && { dialect: dialectOfSpec(dialect) }),
  };
}

function shapeOf(model: WrittenModel): ModelSpec {
  const given = present(model).filter(([field]) => field in MODEL_DEFAULTS);
  return { ...MODEL_DEFAULTS, ...Object.fromEntries(given) };
}

export function checkModel(written: WrittenModel, sampling: SamplingSpec, refuse: Refuse): void {
  checkDialect(written, refuse);
  const spoken = written.from === undefined ? 'gradus' : written.dialect?.name;
  const refused = spoken && refusalOfCalls(spoken, sampling);
  if (refused) refuse(['sampling', 'maxParallelCalls'], refused);
  if (written.from !== undefined) {
    for (const field of Object.keys(MODEL_DEFAULTS) as (keyof typeof MODEL_DEFAULTS)[]) {
      if (written[field] !== undefined)
        refuse(
          ['model', field],
          `is what the checkpoint ${written.from} says: leave it out, or leave out "from"`,
        );
    }
    return;
  }
  const model = shapeOf(written);
  if (model.attentionHeads % model.keyValueHeads !== 0) {
    refuse(
      ['model', 'keyValueHeads'],
      `${model.attentionHeads} attention heads cannot be shared by ${model.keyValueHeads} key-value heads: one must divide the other`,
    );
  }
  const parameters = parametersOf(model);
  if (parameters > MOST_PARAMETERS) {
    refuse(
      ['model'],
      `has ${(parameters / 1e9).toFixed(1)} billion parameters, at most ${MOST_PARAMETERS / 1e9}: lower hiddenSize or layers`,
    );
  }
  if (model.headSize % 16 !== 0) {
    refuse(['model', 'headSize'], 'must be a multiple of 16: the decoder cannot run other ones');
  }
  if (sampling.maxCompletionTokens >= model.maxPositions) {
    refuse(
      ['sampling', 'maxCompletionTokens'],
      `leaves no room for a prompt in model.maxPositions = ${model.maxPositions}`,
    );
  }
}

function parametersOf(model: ModelSpec): number {
  const shapes = weightShapes({ ...model, rmsNormEpsilon: 1e-6, ropeTheta: 10_000 });
  return shapes.reduce((sum, [, shape]) => sum + shape.reduce((a, b) => a * b, 1), 0);
}
