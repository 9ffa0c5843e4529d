import { GradusError } from '../../core/errors.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type {
  BatchRequest,
  BatchResult,
  ChangeRequest,
  DemonstrationsRequest,
  InitializeRequest,
  OpenRunRequest,
  RelabelRequest,
  RelabelResult,
  RetentionRequest,
  StepAnswerRequest,
  StepFactsRequest,
  StoredRequest,
} from '../../core/requests.ts';
import type { KeptChange } from '../../core/run-change.ts';
import type { CurriculumSpec, ModelSource } from '../../core/schema/curriculum-spec.ts';
import { tokenizerConfigOf, withDialect } from '../../engine/dialect/checkpoint-dialect.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { stopTokens } from '../../engine/dialect/gradus/render.ts';
import { PAD, SPECIAL_TOKENS } from '../../engine/dialect/gradus/special-tokens.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { initialWeightsInPieces } from '../../engine/learner/initial-weights.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import type { ModelConfig } from '../../core/model/config.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { trainTokenizerInPieces } from '../../engine/tokenizer/train-bpe.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { promptText } from '../../engine/dialect/gradus/render.ts';
import { corpusText } from './corpus.ts';
import { demonstrationSequences } from './demonstrations.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { Speaking } from '../rollout/policy-pool.ts';
import { assertSpeaks } from '../../spec/assert-speaks.ts';
import { parseSpec } from '../../spec/parse-spec.ts';
import { keepBatch } from '../../store/training/batches.ts';
import { keepChange } from '../../store/run/changes.ts';
import {
  adoptCheckpoint,
  loadModelFiles,
  loadPolicy,
  saveCheckpoint,
  textOf,
} from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import { batchKey, runKey } from '../../store/keys.ts';
import { CREATED_BY } from '../../store/training/manifest.ts';
import type { Kept, ObjectStore } from '../../store/objects/object-store.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import { applyRetention, collectGarbage } from '../../store/training/retention.ts';
import { keepStepAnswer, keepStepFacts } from '../../store/training/step-facts.ts';
import { keepTrajectories, loadTrajectories } from '../../store/rollout/trajectories.ts';
import { trainingSequences } from '../../core/algorithms/credit.ts';
import { scoresCodec } from '../../store/training/scores.ts';
import { assertSameTokenizer, assertStored, collectStored } from './stored-episodes.ts';
import { relabelled } from './relabel.ts';
import { learntTokens, packBatch } from './training-batch.ts';
import { assertSameTokens, namedCheckpoints, pinNamed } from './named-checkpoints.ts';
import type { Durable } from '../durable.ts';
import { IncidentList } from '../incident-list.ts';

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
      const parsed = parseSpec(written, runNameOf(workflowId), environments);
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
      await assertStored(store, spec, signal);
      const checkpoints = await namedCheckpoints(store, parsed.stages, signal);
      const claimed = await claim(store, { ...spec, ...checkpoints }, firstExecutionRunId, signal);
      await pinNamed(store, claimed, signal);
      return claimed;
    },

    /**
     * Checkpoint 0: a tokenizer learnt from demonstrations and random weights, or a copy of the checkpoint that the
     * run begins with. Throws GradusError('spec', 'invalid') when that model has no room for the episodes, or other tokens
     * than a checkpoint that a stage names, or than the episodes of another run that one learns from.
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
        const replaced: ModelFiles = dialect ? withDialect(files, dialect) : new Map();
        await assertSameTokens(store, { config, files: new Map([...files, ...replaced]) }, request, signal);
        return adoptCheckpoint(store, checkpoint, run, { signal, replaced });
      }
      const names = [...new Set(arms.map((arm) => arm.environment))];
      const corpus = await corpusOf(
        names.map((name) => environmentOf(environments, name)),
        signal,
      );
      const trained = trainTokenizerInPieces(corpus, model.shape.vocabSize, SPECIAL_TOKENS);
      const tokenizerJson = JSON.stringify(await inTurns(trained, signal));
      // A small corpus may have fewer pairs to merge than the spec allows.
      const tokenizer = Tokenizer.fromJson(tokenizerJson);
      const { vocabSize } = tokenizer;
      const config: ModelConfig = { ...model.shape, vocabSize, rmsNormEpsilon: 1e-6, ropeTheta: 10_000 };
      const files = newModelFiles(config, tokenizerJson, {
        eos: stopTokens(tokenizer),
        pad: tokenizer.idOf(PAD),
      });
      await assertSameTokens(store, { config, files }, request, signal);
      // Of a model that is there already it is known when the run is opened.
      for (const other of request.episodesOf ?? []) await assertSameTokenizer(store, other, files, signal);
      return saveCheckpoint(
        store,
        {
          run,
          stage: 'initialize',
          step: 0,
          backend: 'none',
          createdBy: CREATED_BY,
          files,
          state: {
            config,
            weights: await inTurns(initialWeightsInPieces(config, seed), signal),
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
      const sequences = await demonstrationSequences(environments, dialectsOf(files), request, signal);
      const key = batchKey(request.run, request.stage, request.round);
      return finish(await keepBatch(store, key, packBatch(sequences, request.updates), { signal }), 0, start);
    },

    /** The tasks of a step whose episodes are stored already, as if they had been rolled out. */
    collectStored: (request: StoredRequest, signal: AbortSignal) => collectStored(store, request, signal),

    /** Failed episodes of a step that solved another task than theirs, kept as one more group of it. */
    async relabelEpisodes(request: RelabelRequest, signal: AbortSignal): Promise<RelabelResult> {
      const start = Date.now();
      const incidents = new IncidentList();
      const groups = await Promise.all(request.groups.map((ref) => loadTrajectories(store, ref, { signal })));
      const dialectFor = dialectsOf(await loadModelFiles(store, request.checkpoint, { signal }));
      const group = await relabelled(environments, dialectFor, groups, request, incidents.asker(signal));
      const kept = group && (await keepTrajectories(store, request, group, { signal }));
      return {
        trajectories: kept?.ref ?? null,
        spans: [{ part: 'verification', start, end: Date.now() }],
        incidents: incidents.all,
      };
    },

    /** Advantages and the batch of a step. `batch` is null when there is nothing to learn from. */
    async buildBatch(request: BatchRequest, signal: AbortSignal): Promise<BatchResult> {
      const start = Date.now();
      const groups = await Promise.all(request.groups.map((ref) => loadTrajectories(store, ref, { signal })));
      const [scores, greedy] = await Promise.all([
        request.scores && store.read(request.scores, scoresCodec, { signal }),
        Promise.all((request.greedy ?? []).map((ref) => loadTrajectories(store, ref, { signal }))),
      ]);
      const { sequences, degenerateGroups, ...more } = trainingSequences(groups, request, {
        greedy,
        ...(scores && { scores }),
      });
      const key = batchKey(request.run, request.stage, request.step);
      const kept = await keepBatch(store, key, packBatch(sequences, request.updates), { signal });
      return { ...finish(kept, degenerateGroups, start), ...more };
    },

    async keepStepFacts({ run, facts }: StepFactsRequest, signal: AbortSignal): Promise<void> {
      await keepStepFacts(store, run, facts, { signal });
    },

    /** Keeps a change in the run's record, and returns it as it lies there. */
    keepChange: ({ run, made }: ChangeRequest, signal: AbortSignal): Promise<KeptChange> =>
      keepChange(store, run, made, { signal }),

    async keepStepAnswer({ run, answer }: StepAnswerRequest, signal: AbortSignal): Promise<void> {
      await keepStepAnswer(store, run, answer, { signal });
    },

    async applyRetention(request: RetentionRequest, signal: AbortSignal): Promise<void> {
      const { run, retention, pinned, scores } = request;
      const byKey = new Map(scores.map(({ checkpoint, score }) => [checkpoint.manifest.key, score]));
      await applyRetention(store, run, { ...retention, pinned }, byKey, { signal });
      await collectGarbage(store, run, { signal });
    },
  };
}

/** What a checkpoint speaks with an environment's tools. */
function dialectsOf(files: ModelFiles): (environment: Speaking) => Dialect {
  const tokenizer = Tokenizer.fromJson(textOf(files, 'tokenizer.json'));
  const config = tokenizerConfigOf(files);
  return ({ tools }) =>
    openDialect(
      tokenizer,
      config,
      tools.map(({ described }) => described),
    );
}

function finish({ ref, value }: Kept<TrainBatch>, degenerateGroups: number, start: number): BatchResult {
  const sequences = value.offsets.length - 1;
  return {
    batch: sequences === 0 ? null : ref,
    sequences,
    tokens: value.tokens.length,
    maskedTokens: learntTokens(value),
    degenerateGroups,
    spans: [{ part: 'data', start, end: Date.now() }],
  };
}

/** The name of a run whose spec gives it none. */
const runNameOf = (workflowId: string): string =>
  workflowId
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 100)
    .replace(/\.$/, '') || 'run';

/**
 * Text to train a tokenizer on, as `demonstrationCorpus` has it; the prompts alone where there is no expert. Throws
 * GradusError('environment', …).
 */
async function corpusOf(environments: readonly HostedEnvironment[], signal: AbortSignal): Promise<string[]> {
  const texts: string[] = [];
  for (const environment of environments) {
    for (const level of environment.levels) {
      const count = Math.min(CORPUS_TASKS, environment.taskCount('train', level));
      const items = Array.from({ length: count }, (_, index) => ({
        ref: { environment: environment.name, split: 'train' as const, level, index },
        index: 0,
      }));
      if (!environment.demonstrates) {
        const refs = items.map(({ ref }) => ref);
        for (const task of await environment.tasks(refs, { signal })) {
          if (task instanceof GradusError) throw task;
          texts.push(promptText(task.prompt));
        }
        continue;
      }
      for (const shown of await environment.demonstrations(items, { signal })) {
        if (shown instanceof GradusError) throw shown;
        const text = corpusText(shown.prompt, shown.demonstration);
        if (text !== null) texts.push(text);
      }
    }
  }
  return texts;
}

/** How many runs of one name are looked at before giving up. */
const MOST_RUNS = 1000;

/**
 * The spec under the first of `name`, `name.2`, `name.3`, … that is free or already this execution's, as it was when the
 * name was claimed: which checkpoint is the newest of another run, say, is decided then. Objects are written once, so
 * a second run under the name of an earlier one would take over what that one left.
 */
async function claim(
  store: ObjectStore,
  spec: CurriculumSpec,
  execution: string,
  signal: AbortSignal,
): Promise<CurriculumSpec> {
  for (let i = 1; i <= MOST_RUNS; i++) {
    const run = i === 1 ? spec.run : `${spec.run}.${i}`;
    const { value: owner } = await store.keep(runKey(run), runClaims, { execution, spec }, { signal });
    if (owner.execution === execution && owner.spec) return { ...owner.spec, run };
  }
  throw new GradusError(
    'store',
    'run-names',
    `${MOST_RUNS} runs are called "${spec.run}": choose another name`,
  );
}
