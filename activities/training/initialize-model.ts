import { GradusError } from '../../core/errors.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { InitializeRequest } from '../../core/requests/run.ts';
import { withDialect } from '../../engine/dialect/checkpoint-dialect.ts';
import { promptTextWithTools, stopTokens } from '../../engine/dialect/gradus/render.ts';
import { PAD, SPECIAL_TOKENS } from '../../engine/dialect/gradus/special-tokens.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { initialWeightsInPieces } from '../../engine/learner/initial-weights.ts';
import type { ModelConfig } from '../../core/model/config.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { trainTokenizerInPieces } from '../../engine/tokenizer/train-bpe.ts';
import { corpusText } from './corpus.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { modelConfigOf } from '../../engine/hf-model-config.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import {
  adoptCheckpoint,
  jsonOf,
  loadModelFiles,
  loadPolicy,
  saveCheckpoint,
} from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { CREATED_BY } from '../../store/training/manifest.ts';
import { assertJudgeFits } from '../rollout/judge-own.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { assertSameTokens } from './named-checkpoints.ts';
import { assertSameTokenizer } from './stored-episodes.ts';

/** Tasks per level that a tokenizer is learnt from. */
const CORPUS_TASKS = 400;

/**
 * Checkpoint 0: a tokenizer learnt from demonstrations and random weights, or a copy of the checkpoint that the
 * run begins with. Throws GradusError('spec', 'invalid') when that model has no room for the episodes or its judge, or other tokens
 * than a checkpoint that a stage names, or than the episodes of another run that one learns from.
 */
export async function initializeModel(
  { store, environments }: CurriculumDependencies,
  request: InitializeRequest,
  signal: AbortSignal,
): Promise<CheckpointRef> {
  const { run, seed, model, arms, maxCompletionTokens } = request;
  if (model.kind === 'from') {
    const { config, files } = await (request.held ? describedModel : loadPolicy)(store, model.checkpoint, {
      signal,
    });
    if (maxCompletionTokens >= config.maxPositions) {
      throw new GradusError(
        'spec',
        'invalid',
        `sampling.maxCompletionTokens = ${maxCompletionTokens} leaves no room for a prompt in the ${config.maxPositions} positions of ${model.checkpoint.manifest.key}: lower it`,
      );
    }
    const { checkpoint, dialect } = model;
    const replaced: ModelFiles = dialect ? withDialect(files, dialect) : new Map();
    const spoken = new Map([...files, ...replaced]);
    await assertSameTokens(store, { config, files: spoken }, request, signal);
    if (request.judge) assertJudgeFits(spoken, config, request.judge);
    return adoptCheckpoint(store, checkpoint, run, { signal, replaced });
  }
  const names = [...new Set(arms.map((arm) => arm.environment))];
  const corpus = await corpusOf(
    names.map((name) => environmentOf(environments, name)),
    model.dialect?.describeTools ?? false,
    signal,
  );
  const trained = trainTokenizerInPieces(corpus, model.shape.vocabSize, SPECIAL_TOKENS);
  const tokenizerJson = JSON.stringify(await inTurns(trained, signal));
  // A small corpus may have fewer pairs to merge than the spec allows.
  const tokenizer = Tokenizer.fromJson(tokenizerJson);
  const { vocabSize } = tokenizer;
  const config: ModelConfig = { ...model.shape, vocabSize, rmsNormEpsilon: 1e-6, ropeTheta: 10_000 };
  const made = newModelFiles(config, tokenizerJson, {
    eos: stopTokens(tokenizer),
    pad: tokenizer.idOf(PAD),
  });
  const files = model.dialect ? new Map([...made, ...withDialect(made, model.dialect)]) : made;
  await assertSameTokens(store, { config, files }, request, signal);
  if (request.judge) assertJudgeFits(files, config, request.judge);
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
}

/**
 * Text to train a tokenizer on, as `demonstrationCorpus` has it; the prompts alone where there is no expert. Throws
 * GradusError('environment', …). `describeTools`: whether prompts describe the tools.
 */
async function corpusOf(
  environments: readonly HostedEnvironment[],
  describeTools: boolean,
  signal: AbortSignal,
): Promise<string[]> {
  const texts: string[] = [];
  for (const environment of environments) {
    const described = describeTools ? environment.tools.map((tool) => tool.described) : [];
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
          texts.push(promptTextWithTools(task.prompt, described));
        }
        continue;
      }
      for (const shown of await environment.demonstrations(items, { signal })) {
        if (shown instanceof GradusError) throw shown;
        const text = corpusText(shown.prompt, shown.demonstration, described);
        if (text !== null) texts.push(text);
      }
    }
  }
  return texts;
}

/** Of a checkpoint whose weights servers hold. */
async function describedModel(store: ObjectStore, ref: CheckpointRef, options: CallOptions) {
  const files = await loadModelFiles(store, ref, options);
  return { config: modelConfigOf(jsonOf(files, 'config.json'), jsonOf(files, 'tokenizer.json')), files };
}
