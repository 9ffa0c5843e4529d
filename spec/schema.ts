import { z } from 'zod';
import { ABSTENTION_RULES } from '../core/ladder/policy.ts';
import { MOST_KEPT } from '../engine/decoder/sampler.ts';
import { LORA_MODULES } from '../engine/lora/adapter-shapes.ts';
import {
  amount,
  budget,
  concurrency,
  count,
  deadlineSeconds,
  decay,
  fraction,
  givenName,
  name,
  NAME,
  positive,
} from './fields.ts';

// What a person writes. Strict everywhere: a field that would do nothing is refused. Descriptions become the
// documentation in `examples/curriculum.schema.json`.

const confidence = (usual: number, what: string) =>
  z.number().min(0.5).max(0.9999).default(usual).describe(what);

export const tasksSchema = z
  .array(
    z.strictObject({
      environment: givenName.describe('Name of an environment that the workers know.'),
      levels: z
        .array(z.int())
        .nonempty()
        .max(256, 'has at most 256 levels')
        .describe('Difficulty levels of that environment.'),
    }),
  )
  .nonempty()
  .max(64, 'has at most 64 entries');

/** Of one evaluation, whose child workflows are all in one history. */
export const MOST_TASKS = 100_000;
const MEASURED = 'the interval is narrower than anybody needs, and one history holds the measurement';
/** Of one step: they become one batch. */
export const MOST_EPISODES = 65_536;

const optimizer = (learningRate: number) =>
  z
    .strictObject({
      learningRate: positive(1, 'Adam moves each weight by about that much').default(learningRate),
      warmupUpdates: count(1e6, 'the rate would never be reached', 0)
        .default(10)
        .describe('Updates over which the rate rises linearly.'),
      beta1: decay.default(0.9),
      beta2: decay.default(0.999),
      epsilon: z.number().min(1e-20).max(1).default(1e-8),
      maxGradientNorm: amount(1e6, '0 leaves the gradient alone')
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

const shape = (field: keyof typeof MOST, what = '') =>
  count(MOST[field], 'import a larger model and name it in model.from', field === 'vocabSize' ? 300 : 1)
    .optional()
    .describe(`${what}${what && ' '}Default ${MODEL_DEFAULTS[field]}.`);

const dialect = z
  .strictObject({
    name: givenName.describe('gradus, hermes, llama3, search-r1 or retool.'),
    thinking: z.boolean().optional().describe('What the chat template reads as enable_thinking.'),
    date: z.iso.date().optional().describe('The day that the chat template is told, YYYY-MM-DD.'),
    tool: givenName
      .optional()
      .describe('search-r1 and retool: the tool that the tag calls. Needed where there are several.'),
    argument: givenName
      .optional()
      .describe('search-r1 and retool: its text argument. Needed where it has several.'),
  })
  .describe('How the policy calls tools and answers. Default: what the checkpoint says.');

const lora = z
  .strictObject({
    rank: z.int().min(1).max(1024).default(8),
    alpha: positive(65_536, 'lower it, or raise the rank')
      .default(16)
      .describe('What the adapter adds counts for alpha / rank.'),
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
      .max(120, 'has at most 120 characters')
      .regex(
        new RegExp(`${NAME.source.slice(0, -1)}(@\\d{1,9})?$`),
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
      .max(2 ** 24, `must be at most ${2 ** 24}: 0 computes as many as are fast`)
      .default(0)
      .describe('Positions that are computed at once, padding included; gradients add up. 0: what is fast.'),
  })
  .prefault({})
  .describe('How the learner computes.');

const sampling = z
  .strictObject({
    temperature: z
      .number()
      .min(0.01, 'must be at least 0.01: below it there is nothing to explore')
      .max(100, 'must be at most 100: above it every token is as likely')
      .default(1),
    topK: count(MOST_KEPT, 'what each token is sampled among is kept with it; 0 keeps all tokens', 0)
      .default(0)
      .describe(
        'Sample among the k likeliest tokens, and learn from the softmax over the same ones; 0: among all.',
      ),
    topP: positive(1, '1 keeps all tokens')
      .default(1)
      .describe('Of the topK likeliest, those that have this probability together; 1: all of them.'),
    maxTurns: count(1000, 'each turn of each episode is kept')
      .default(8)
      .describe('Policy turns per episode.'),
    maxCompletionTokens: count(MOST.maxPositions, 'no model has room for more')
      .default(160)
      .describe('Tokens after the prompt: sampled and observed.'),
  })
  .prefault({});

const reward = z.strictObject({
  components: z
    .array(
      z.strictObject({
        verifier: givenName,
        role: z
          .enum(['outcome', 'bonus', 'penalty'])
          .describe(
            'outcome: decides success, exactly one. bonus: adds weight × score. penalty: subtracts weight × (1 − score).',
          ),
        weight: amount(1000, 'weigh the others less').default(1),
        gatedBy: givenName
          .nullable()
          .default(null)
          .describe('Counts only where this verifier gave the full score.'),
      }),
    )
    .nonempty()
    .max(32, 'has at most 32 components'),
  truncated: z
    .enum(['train', 'mask'])
    .default('train')
    .describe('Episodes cut by a limit: trained on with their reward, or left out of loss and statistics.'),
});

const verification = z
  .strictObject({
    rungs: z
      .array(
        z.strictObject({
          verifier: givenName,
          passAtLeast: fraction.describe('A score from which on a candidate climbs to the next rung.'),
          escalate: z
            .strictObject({
              valueAtLeast: fraction.default(1),
              uncertaintyAtLeast: amount(1, 'of a score in [0, 1]; 1 asks for nothing').default(1),
            })
            .prefault({})
            .describe(
              'A candidate that fails climbs all the same when the next rung is expected to say so much, with so large a standard deviation.',
            ),
          wait: z.boolean().default(true).describe('A step waits for the verdicts of this rung.'),
          deadlineSeconds: deadlineSeconds.default(3600).describe('How long it waits at most.'),
          missing: z
            .enum(['cheaper', 'pending'])
            .default('cheaper')
            .describe('Without a verdict that is due: the cheaper one stands, or the episode is pending.'),
          abstains: z
            .enum(ABSTENTION_RULES)
            .default(ABSTENTION_RULES[0])
            .describe(
              'What an episode is worth that the rung below passed and that this one cannot judge. zero: nothing, where the abstention is about the subject, else it teaches nothing; expected: what the dearest rung is expected to say; abstained: it teaches nothing, which a policy may learn to prefer.',
            ),
          budget: budget.prefault({}),
          concurrency: concurrency.default(16).describe('Computations in flight at once.'),
          reviewers: count(99, 'so many people will not agree to review')
            .default(1)
            .describe('People whose majority is the verdict, where people give it.'),
        }),
      )
      .min(2)
      .max(8, 'has at most 8 rungs'),
    offerLateFor: z
      .int()
      .min(0)
      .max(32)
      .default(0)
      .describe('For so many steps a late verdict brings its episodes before the learner again; 0: never.'),
    counts: z
      .enum(['verdicts', 'computations'])
      .default('verdicts')
      .describe(
        "What a budget's count counts. verdicts: those that the run asks for, known or not, so that it ends the same in any store; computations: those that are made for it, and what is known is free.",
      ),
    evaluateBy: givenName
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
    minibatch: count(8192, 'raise updatesPerRound instead')
      .default(64)
      .describe('Demonstrations per optimizer update.'),
    updatesPerRound: count(10_000, 'raise maxRounds instead').default(50),
    maxRounds: count(10_000, 'a warm start that needs more does not learn').default(60),
    optimizer: optimizer(1e-3),
    graduation: z.strictObject({
      successAtLeast: fraction.describe('Held-out success that every level must reach before RL begins.'),
      tasksPerLevel: count(MOST_TASKS, MEASURED).default(64),
    }),
  })
  .describe('Supervised rounds on generated demonstrations until every level succeeds now and then.');

const algorithm = z
  .strictObject({
    kind: z.literal('grpo').default('grpo'),
    scaleRewards: z
      .enum(['group', 'none'])
      .default('group')
      .describe(
        'Divide by the deviation of the group (GRPO), or not: Dr. GRPO is none with aggregation dr-grpo.',
      ),
    clipRatioLow: positive(1, 'a ratio is never below 0').default(0.2),
    clipRatioHigh: positive(100, 'above it nothing is clipped').default(0.28),
    beta: amount(100, 'lower it: nothing but the KL would be learnt')
      .default(0)
      .describe('Weight of the K3 KL to the warm start; 0 leaves it out.'),
    aggregation: z
      .enum(['token', 'sequence', 'dr-grpo'])
      .default('token')
      .describe(
        'What the loss is a mean over. token: all tokens (DAPO). sequence: tokens, then sequences (GRPO). dr-grpo: sequences, of the sum of tokens divided by sampling.maxCompletionTokens (Dr. GRPO).',
      ),
    numIterations: count(100, "the batch is no longer the policy's own")
      .default(1)
      .describe('Passes over each batch.'),
    minibatch: count(MOST_EPISODES, 'a step has no more episodes')
      .default(128)
      .describe('Sequences per optimizer update at most; all updates of a step have about as many.'),
    importanceCap: amount(1e6, '0 leaves the weight out')
      .default(0)
      .describe('Cap of the truncated importance weight between learner and rollout; 0 leaves it out.'),
  })
  .prefault({});

const stage = z.strictObject({
  name: name.describe('Unique in the run.'),
  tasks: tasksSchema,
  groupsPerStep: count(MOST_EPISODES / 2, 'take more steps')
    .default(16)
    .describe('Tasks per step.'),
  groupsPerWorkflow: count(512, "the names of a workflow's tasks pass through its history")
    .default(32)
    .describe('Tasks that one child workflow rolls out together; it does not change what is sampled.'),
  numGenerations: count(4096, 'draw more tasks instead', 2).default(16).describe('Samples per task.'),
  maxSteps: count(1e6, 'write another stage'),
  algorithm,
  optimizer: optimizer(3e-4),
  graduation: z.strictObject({
    successAtLeast: fraction.describe('Held-out success that must be shown.'),
    confidence: confidence(
      0.9,
      'Probability that none of the evaluations of the stage graduates a policy that is worse.',
    ),
    tasks: count(MOST_TASKS, MEASURED).default(300),
    everySteps: count(1e6, 'the last step is always measured').default(10),
  }),
  plateau: z
    .strictObject({
      evaluations: count(200, 'each of them is carried from step to step', 2)
        .default(8)
        .describe('The latest evaluations: their second half is compared with their first.'),
      minImprovement: fraction
        .default(0.05)
        .describe('A plateau is where so large a gain of held-out success can be ruled out.'),
      confidence: confidence(
        0.9,
        'Probability that none of the evaluations of the stage finds a plateau where there is that gain.',
      ),
      action: z.enum(['advance', 'stop', 'ask']).default('advance'),
    })
    .prefault({}),
  collapse: z
    .strictObject({
      successBelowBest: fraction
        .default(0.7)
        .describe('Part of the best held-out success of the stage; 0 switches this rule off.'),
      confidence: confidence(
        0.95,
        'Probability that none of the evaluations of the stage finds such a fall where there is none.',
      ),
      entropyBelow: amount(20, 'no vocabulary has so much entropy')
        .default(0)
        .describe(
          'Entropy of the policy in nats a token, estimated by what it sampled in the step; 0 switches this rule off.',
        ),
      action: z.enum(['rollback', 'stop', 'ask']).default('rollback'),
      learningRateFactor: positive(1, 'a roll-back goes on more carefully').default(0.5),
      maxRollbacks: count(1000, 'a person should have been asked', 0)
        .default(2)
        .describe('After these a person is asked.'),
    })
    .prefault({}),
  budgets: z.record(givenName, budget).optional().describe("By verifier, in place of the rung's own."),
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
    stages: z.array(stage).nonempty().max(64, 'has at most 64 stages: what each ended with is carried along'),
    evaluation: z.strictObject({
      tasks: tasksSchema,
      count: count(MOST_TASKS, MEASURED).default(1000),
      confidence: z
        .number()
        .min(0.5)
        .max(0.9999)
        .default(0.95)
        .describe('Two-sided, of the printed intervals.'),
    }),
    retention: z
      .strictObject({
        keepLast: count(1e6, 'that keeps all').default(3),
        keepBest: z.int().min(0).max(1).default(1).describe("1 keeps each stage's best."),
        keepEvery: count(1e6, '0 keeps none for its number', 0)
          .default(0)
          .describe('Keep every n-th step; 0 keeps none for its number.'),
      })
      .prefault({})
      .describe('Which checkpoints outlive the run.'),
  })
  .describe('A Gradus curriculum.');

export type WrittenSpec = z.output<typeof curriculumSchema>;
