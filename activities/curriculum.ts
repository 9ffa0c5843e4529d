import { GradusError } from '../core/errors.ts';
import type { BlobRef, CheckpointRef } from '../core/refs.ts';
import type {
  BatchRequest,
  BatchResult,
  DemonstrationsRequest,
  InitializeRequest,
  OpenRunRequest,
  RetentionRequest,
} from '../core/requests.ts';
import type { CurriculumSpec, ModelSource } from '../core/spec.ts';
import { tokenizerConfigOf, withDialect } from '../engine/dialect/checkpoint-dialect.ts';
import type { Dialect } from '../engine/dialect/contract.ts';
import { stopTokens } from '../engine/dialect/gradus/render.ts';
import { PAD, SPECIAL_TOKENS } from '../engine/dialect/gradus/special-tokens.ts';
import { openDialect } from '../engine/dialect/open-dialect.ts';
import { newModelFiles } from '../engine/new-model-files.ts';
import { initialWeights } from '../engine/learner/initial-weights.ts';
import type { ModelConfig } from '../engine/model-config.ts';
import { Tokenizer } from '../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../engine/tokenizer/train-bpe.ts';
import type { Environment } from '../environments/contract.ts';
import { demonstrationCorpus } from '../environments/corpus.ts';
import { demonstrationSequences } from './demonstrations.ts';
import { describeTools } from './describe-tools.ts';
import { environmentOf } from './environment-of.ts';
import type { Environments } from './environment-of.ts';
import { assertSpeaks } from './spec/assert-speaks.ts';
import { parseSpec } from './spec/parse-spec.ts';
import { saveBatch } from './store/batches.ts';
import { adoptCheckpoint, loadModelFiles, loadPolicy, saveCheckpoint, textOf } from './store/checkpoints.ts';
import { checkpointOf } from './store/find-checkpoints.ts';
import { batchKey, runKey } from './store/keys.ts';
import { CREATED_BY } from './store/manifest.ts';
import type { ObjectStore } from './store/object-store.ts';
import { applyRetention, collectGarbage } from './store/retention.ts';
import { loadTrajectories } from './store/trajectories.ts';
import { packBatch, trainingSequences } from './training-batch.ts';
import type { TrainSequence } from './training-batch.ts';
import type { Durable } from './durable.ts';

export interface CurriculumDependencies {
  store: ObjectStore;
  environments: Environments;
}

export type CurriculumActivities = Durable<ReturnType<typeof createCurriculum>>;

/** Tasks per level that a tokenizer is learnt from. */
const CORPUS_TASKS = 400;

export function createCurriculum(deps: CurriculumDependencies) {
  const { store, environments } = deps;
  return {
    /** Reads the spec, and claims a name for the run in the store. Refuses a wrong spec before anything is spent. */
    async openRun(request: OpenRunRequest, signal: AbortSignal): Promise<CurriculumSpec> {
      const { spec: written, workflowId, firstExecutionRunId } = request;
      const wanted = workflowId.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '') || 'run';
      const parsed = parseSpec(written, wanted.slice(0, 100), environments);
      const model: ModelSource =
        parsed.model.kind === 'scratch'
          ? parsed.model
          : {
              kind: 'from',
              checkpoint: await checkpointOf(store, parsed.model, { signal }),
              ...(parsed.model.dialect && { dialect: parsed.model.dialect }),
            };
      const spec: CurriculumSpec = { ...parsed, model };
      if (model.kind === 'from') {
        assertSpeaks(
          await loadModelFiles(store, model.checkpoint, { signal }),
          spec,
          model.dialect,
          environments,
        );
      }
      return { ...spec, run: await claim(store, spec, firstExecutionRunId, signal) };
    },

    /**
     * Checkpoint 0: a tokenizer learnt from demonstrations and random weights, or a copy of the checkpoint that the
     * run begins with. Throws GradusError('spec', 'invalid') when that model has no room for the episodes.
     */
    async initializeModel(request: InitializeRequest, signal: AbortSignal): Promise<CheckpointRef> {
      const { run, seed, model, arms, maxCompletionTokens } = request;
      if (model.kind === 'from') {
        const { config, files } = await loadPolicy(store, model.checkpoint, { signal });
        if (maxCompletionTokens >= config.maxPositions) {
          throw new GradusError(
            'spec',
            'invalid',
            `sampling.maxCompletionTokens = ${maxCompletionTokens} leaves no room for a prompt in the ${config.maxPositions} positions of ${model.checkpoint.manifest.key}: lower it`,
          );
        }
        const { checkpoint, dialect } = model;
        if (!dialect) return adoptCheckpoint(store, checkpoint, run, { signal });
        return adoptCheckpoint(store, checkpoint, run, { signal, replaced: withDialect(files, dialect) });
      }
      const names = [...new Set(arms.map((arm) => arm.environment))];
      const corpus = demonstrationCorpus(
        names.map((name) => environmentOf(environments, name)),
        CORPUS_TASKS,
      );
      const tokenizerJson = JSON.stringify(trainTokenizer(corpus, model.shape.vocabSize, SPECIAL_TOKENS));
      // A small corpus may have fewer pairs to merge than the spec allows.
      const tokenizer = Tokenizer.fromJson(tokenizerJson);
      const { vocabSize } = tokenizer;
      const config: ModelConfig = { ...model.shape, vocabSize, rmsNormEpsilon: 1e-6, ropeTheta: 10_000 };
      return saveCheckpoint(
        store,
        {
          run,
          stage: 'initialize',
          step: 0,
          backend: 'none',
          createdBy: CREATED_BY,
          files: newModelFiles(config, tokenizerJson, {
            eos: stopTokens(tokenizer),
            pad: tokenizer.idOf(PAD),
          }),
          state: {
            config,
            weights: initialWeights(config, seed),
            firstMoments: new Map(),
            secondMoments: new Map(),
            updates: 0,
          },
        },
        { signal },
      );
    },

    async buildDemonstrations(request: DemonstrationsRequest, signal: AbortSignal): Promise<BatchResult> {
      const start = Date.now();
      const files = await loadModelFiles(store, request.checkpoint, { signal });
      const tokenizer = Tokenizer.fromJson(textOf(files, 'tokenizer.json'));
      const config = tokenizerConfigOf(files);
      const dialectFor = (environment: Environment): Dialect =>
        openDialect(tokenizer, config, describeTools(environment.tools));
      const sequences = await demonstrationSequences(environments, dialectFor, request, signal);
      const key = batchKey(request.run, request.stage, request.round);
      return finish(await keep(store, key, sequences, signal), sequences, 0, start);
    },

    /** Advantages and the batch of a step. `batch` is null when there is nothing to learn from. */
    async buildBatch(request: BatchRequest, signal: AbortSignal): Promise<BatchResult> {
      const start = Date.now();
      const groups = await Promise.all(request.groups.map((ref) => loadTrajectories(store, ref, { signal })));
      const { sequences, degenerateGroups } = trainingSequences(groups, request);
      const key = batchKey(request.run, request.stage, request.step);
      return finish(await keep(store, key, sequences, signal), sequences, degenerateGroups, start);
    },

    async applyRetention(request: RetentionRequest, signal: AbortSignal): Promise<void> {
      const { run, retention, pinned, scores } = request;
      const byKey = new Map(scores.map(({ checkpoint, score }) => [checkpoint.manifest.key, score]));
      await applyRetention(store, run, { ...retention, pinned }, byKey, { signal });
      await collectGarbage(store, run, { signal });
    },
  };
}

async function keep(
  store: ObjectStore,
  key: string,
  sequences: readonly TrainSequence[],
  signal: AbortSignal,
): Promise<BlobRef | null> {
  if (sequences.length === 0) return null;
  return saveBatch(store, key, packBatch(sequences), { signal });
}

function finish(
  batch: BlobRef | null,
  sequences: readonly TrainSequence[],
  degenerateGroups: number,
  start: number,
): BatchResult {
  return {
    batch,
    sequences: sequences.length,
    tokens: sequences.reduce((sum, { tokens }) => sum + tokens.length, 0),
    degenerateGroups,
    spans: [{ part: 'data', start, end: Date.now() }],
  };
}

/** How many runs of one name are looked at before giving up. */
const MOST_RUNS = 1000;

/**
 * The first of `name`, `name.2`, `name.3`, … that is free or already this execution's. Objects are written once, so
 * a second run under the name of an earlier one would take over what that one left.
 */
async function claim(
  store: ObjectStore,
  spec: CurriculumSpec,
  execution: string,
  signal: AbortSignal,
): Promise<string> {
  for (let i = 1; i <= MOST_RUNS; i++) {
    const run = i === 1 ? spec.run : `${spec.run}.${i}`;
    const ref = await store.putJson(runKey(run), { execution, spec }, { signal });
    const owner = (await store.getJson(ref, { signal })) as { execution?: string };
    if (owner.execution === execution) return run;
  }
  throw new GradusError(
    'store',
    'run-names',
    `${MOST_RUNS} runs are called "${spec.run}": choose another name`,
  );
}
