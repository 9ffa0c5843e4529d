import { z } from 'zod';
import { LORA_MODULES } from '../../engine/lora/adapter-shapes.ts';

// What a person writes. Strict everywhere: a field that would do nothing is refused. Descriptions become the
// documentation in `examples/curriculum.schema.json`.

const fraction = z.number().min(0).max(1);
/** Adam divides by 1 − decay. */
const decay = z.number().min(0).lt(1);
const positive = z.number().positive();
const count = z.int().positive();
const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    'use letters, digits, ".", "_" and "-", starting with a letter or digit',
  )
  .max(100);

export const tasksSchema = z
  .array(
    z.strictObject({
      environment: z.string().describe('Name of an environment that the workers know.'),
      levels: z.array(z.int()).nonempty().describe('Difficulty levels of that environment.'),
    }),
  )
  .nonempty();

const optimizer = (learningRate: number) =>
  z
    .strictObject({
      learningRate: positive.default(learningRate),
      warmupUpdates: z.int().min(0).default(10).describe('Updates over which the rate rises linearly.'),
      beta1: decay.default(0.9),
      beta2: decay.default(0.999),
      epsilon: positive.default(1e-8),
      maxGradientNorm: z
        .number()
        .min(0)
        .default(1)
        .describe('Clip of the global L2 norm; 0 leaves it alone.'),
    })
    .prefault({})
    .describe('Adam (Kingma & Ba 2015).');

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

const shape = (field: Exclude<keyof typeof MODEL_DEFAULTS, 'tieEmbeddings'>, what = '') =>
  (field === 'vocabSize' ? z.int().min(300) : count)
    .optional()
    .describe(`${what}${what && ' '}Default ${MODEL_DEFAULTS[field]}.`);

const dialect = z
  .strictObject({
    name: z.string().describe('gradus, hermes, llama3, search-r1 or retool.'),
    thinking: z.boolean().optional().describe('What the chat template reads as enable_thinking.'),
    date: z.iso.date().optional().describe('The day that the chat template is told, YYYY-MM-DD.'),
    tool: z
      .string()
      .optional()
      .describe('search-r1 and retool: the tool that the tag calls. Needed where there are several.'),
    argument: z
      .string()
      .optional()
      .describe('search-r1 and retool: its text argument. Needed where it has several.'),
  })
  .describe('How the policy calls tools and answers. Default: what the checkpoint says.');

const lora = z
  .strictObject({
    rank: z.int().min(1).max(1024).default(8),
    alpha: positive.default(16).describe('What the adapter adds counts for alpha / rank.'),
    targetModules: z
      .array(z.enum(LORA_MODULES))
      .nonempty()
      .default([...LORA_MODULES])
      .describe('Linear layers that get an adapter.'),
    rsLora: z.boolean().default(false).describe('alpha / √rank instead (Kalajdzievski 2023).'),
  })
  .optional()
  .describe('Train a LoRA adapter (Hu et al. 2021) beside weights that stay. Absent: train all weights.');

const model = z
  .strictObject({
    from: z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]*(@\d+)?$/,
        'name a run, or RUN@STEP; an imported model is the run of its name',
      )
      .optional()
      .describe('Begin with the last checkpoint of that run, or with RUN@STEP; its shape is its own.'),
    dialect: dialect.optional(),
    vocabSize: shape('vocabSize', 'At most; a small corpus may give fewer.'),
    hiddenSize: shape('hiddenSize'),
    intermediateSize: shape('intermediateSize'),
    layers: shape('layers'),
    attentionHeads: shape('attentionHeads'),
    keyValueHeads: shape('keyValueHeads'),
    headSize: shape('headSize'),
    maxPositions: shape('maxPositions', 'Longest sequence in tokens, prompt included.'),
    tieEmbeddings: z.boolean().optional().describe(`Default ${MODEL_DEFAULTS.tieEmbeddings}.`),
    lora,
  })
  .prefault({})
  .describe(
    'A decoder-only transformer: of the Llama family and trained from scratch, or one that is there already.',
  );

const learner = z
  .strictObject({
    precision: z
      .enum(['float32', 'bfloat16'])
      .default('float32')
      .describe('Of the operands of matrix products; everything else is float32.'),
    gradientCheckpointing: z
      .boolean()
      .default(false)
      .describe("Compute each layer's activations again in the backward pass: less memory, more time."),
    microBatchTokens: z
      .int()
      .min(0)
      .default(0)
      .describe('Positions that are computed at once, padding included; gradients add up. 0: what is fast.'),
  })
  .prefault({})
  .describe('How the learner computes.');

const sampling = z
  .strictObject({
    temperature: positive.default(1),
    topK: z.int().min(0).default(0).describe('0 keeps all tokens.'),
    topP: positive.max(1).default(1),
    maxTurns: count.default(8).describe('Policy turns per episode.'),
    maxCompletionTokens: count.default(160).describe('Tokens after the prompt: sampled and observed.'),
  })
  .prefault({});

const reward = z.strictObject({
  components: z
    .array(
      z.strictObject({
        verifier: z.string(),
        role: z
          .enum(['outcome', 'bonus', 'penalty'])
          .describe(
            'outcome: decides success, exactly one. bonus: adds weight × score. penalty: subtracts weight × (1 − score).',
          ),
        weight: z.number().min(0).default(1),
        gatedBy: z
          .string()
          .nullable()
          .default(null)
          .describe('Counts only where this verifier gave the full score.'),
      }),
    )
    .nonempty(),
  truncated: z
    .enum(['train', 'mask'])
    .default('train')
    .describe('Episodes cut by a limit: trained on with their reward, or left out of loss and statistics.'),
});

const budget = z
  .strictObject({
    count: z.int().min(0).optional().describe('Computations.'),
    seconds: z.number().min(0).optional(),
    usd: z.number().min(0).optional(),
    perStep: z.int().min(1).optional().describe('Computations of one step at most.'),
  })
  .describe('What may be spent in each stage; what is left out has no limit.');

const verification = z
  .strictObject({
    rungs: z
      .array(
        z.strictObject({
          verifier: z.string(),
          passAtLeast: fraction.describe('A score from which on a candidate climbs to the next rung.'),
          escalate: z
            .strictObject({
              valueAtLeast: fraction.default(1),
              uncertaintyAtLeast: z.number().min(0).default(1),
            })
            .prefault({})
            .describe(
              'A candidate that fails climbs all the same when the next rung is expected to say so much, with so large a standard deviation.',
            ),
          wait: z.boolean().default(true).describe('A step waits for the verdicts of this rung.'),
          deadlineSeconds: positive.default(3600).describe('How long it waits at most.'),
          missing: z
            .enum(['cheaper', 'pending'])
            .default('cheaper')
            .describe('Without a verdict that is due: the cheaper one stands, or the episode is pending.'),
          budget: budget.prefault({}),
          concurrency: count.default(16).describe('Computations in flight at once.'),
          reviewers: count.default(1).describe('People whose majority is the verdict, where people give it.'),
        }),
      )
      .min(2),
    offerLateFor: z
      .int()
      .min(0)
      .max(32)
      .default(0)
      .describe('For so many steps a late verdict brings its episodes before the learner again; 0: never.'),
    evaluateBy: z
      .string()
      .optional()
      .describe(
        'The rung that judges every held-out answer which the lowest one passes; otherwise the dearest rung that steps wait for and that has no budget.',
      ),
  })
  .describe(
    'The ladder that candidates climb, cheapest verifier first. The reward names its dearest verdict "ladder".',
  );

const warmStart = z
  .strictObject({
    tasks: tasksSchema,
    minibatch: count.default(64).describe('Demonstrations per optimizer update.'),
    updatesPerRound: count.default(50),
    maxRounds: count.default(60),
    optimizer: optimizer(1e-3),
    graduation: z.strictObject({
      successAtLeast: fraction.describe('Held-out success that every level must reach before RL begins.'),
      tasksPerLevel: count.default(64),
    }),
  })
  .describe('Supervised rounds on generated demonstrations until every level succeeds now and then.');

const algorithm = z
  .strictObject({
    kind: z.literal('grpo').default('grpo'),
    scaleRewards: z.enum(['group', 'none']).default('group'),
    clipRatioLow: positive.default(0.2),
    clipRatioHigh: positive.default(0.28),
    beta: z.number().min(0).default(0).describe('Weight of the K3 KL to the warm start; 0 leaves it out.'),
    aggregation: z.enum(['token', 'sequence']).default('token'),
    numIterations: count.default(1).describe('Passes over each batch.'),
    minibatch: count.default(128).describe('Sequences per optimizer update.'),
    importanceCap: z
      .number()
      .min(0)
      .default(0)
      .describe('Cap of the truncated importance weight between learner and rollout; 0 leaves it out.'),
  })
  .prefault({});

const stage = z.strictObject({
  name: name.describe('Unique in the run.'),
  tasks: tasksSchema,
  groupsPerStep: count.default(16).describe('Tasks per step.'),
  groupsPerWorkflow: count
    .default(32)
    .describe('Tasks that one child workflow rolls out together; it does not change what is sampled.'),
  numGenerations: z.int().min(2).default(16).describe('Samples per task.'),
  maxSteps: count,
  algorithm,
  optimizer: optimizer(3e-4),
  graduation: z.strictObject({
    successAtLeast: fraction.describe('What the lower confidence bound of held-out success must reach.'),
    confidence: z.number().min(0.5).max(0.9999).default(0.9).describe('One-sided.'),
    tasks: count.default(300),
    everySteps: count.default(10),
  }),
  plateau: z
    .strictObject({
      evaluations: count.default(8),
      minImprovement: fraction.default(0.005),
      action: z.enum(['advance', 'stop', 'ask']).default('advance'),
    })
    .prefault({}),
  collapse: z
    .strictObject({
      successBelowBest: fraction.default(0.7).describe('Part of the best held-out success of the stage.'),
      entropyBelow: z
        .number()
        .min(0)
        .default(0)
        .describe('Nats per sampled token; 0 switches this rule off.'),
      action: z.enum(['rollback', 'stop', 'ask']).default('rollback'),
      learningRateFactor: positive.max(1).default(0.5),
      maxRollbacks: z.int().min(0).default(2).describe('After these a person is asked.'),
    })
    .prefault({}),
  budgets: z.record(z.string(), budget).optional().describe("By verifier, in place of the rung's own."),
  retryFailures: fraction.default(0.125).describe("Part of each step's tasks drawn again from failed ones."),
});

export const curriculumSchema = z
  .strictObject({
    $schema: z.string().optional(),
    run: name.optional().describe("Name of the run in the store; the workflow's id where it is absent."),
    seed: z.int().min(0).default(0).describe('Every random choice of the run follows from it.'),
    model,
    learner,
    sampling,
    reward,
    verification: verification.optional(),
    warmStart: warmStart
      .optional()
      .describe('May be left out for a model that comes from a checkpoint: RL then begins with it.'),
    stages: z.array(stage).nonempty(),
    evaluation: z.strictObject({
      tasks: tasksSchema,
      count: count.default(1000),
      confidence: z
        .number()
        .min(0.5)
        .max(0.9999)
        .default(0.95)
        .describe('Two-sided, of the printed intervals.'),
    }),
    retention: z
      .strictObject({
        keepLast: z.int().min(1).default(3),
        keepBest: z.int().min(0).max(1).default(1).describe("1 keeps each stage's best."),
        keepEvery: z.int().min(0).default(0).describe('Keep every n-th step; 0 keeps none for its number.'),
      })
      .prefault({})
      .describe('Which checkpoints outlive the run.'),
  })
  .describe('A Gradus curriculum.');

export type WrittenSpec = z.output<typeof curriculumSchema>;
