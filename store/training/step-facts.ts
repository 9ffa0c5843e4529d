import { z } from 'zod';
import { DECISIONS } from '../../core/question.ts';
import type { Decision } from '../../core/question.ts';
import type { StepAnswer, StepFacts } from '../../core/training/step-facts.ts';
import { jsonCodec } from '../codec.ts';
import { inParallel } from '../in-parallel.ts';
import { stepAnswerKey, stepFactsKey, stepFactsPrefix, stepsPrefix } from '../keys.ts';
import { checkpointRef } from './manifest.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

const FORMAT = 'gradus.step/1';

const count = z.number();
const counts = z.record(z.string(), count);
const arms = z.array(
  z.looseObject({
    arm: z.looseObject({ environment: z.string(), level: z.number() }),
    successes: count,
    trials: count,
  }),
);

/** What readers work with is checked; whatever else a later version has written is let pass. */
const facts = jsonCodec<StepFacts & { format: string }>(
  'the facts of a step',
  z.looseObject({
    format: z.literal(FORMAT),
    stage: z.string(),
    stageStep: z.int(),
    step: z.int(),
    checkpoint: checkpointRef,
    rollout: z
      .looseObject({
        outcomes: counts,
        arms,
        rewardSum: count,
        rewardCount: count,
        sampledTokens: count,
        otherTokens: count.optional(),
        hinted: z.looseObject({ successes: count, trials: count }).optional(),
        sampledLogprob: count,
        staleness: count.optional(),
        staleUpdates: count.optional(),
        sampledByStaleness: z.array(count).optional(),
        selfPlay: z
          .looseObject({
            proposer: z.looseObject({ rewardSum: count, rewardCount: count }),
            solver: z.looseObject({ rewardSum: count, rewardCount: count }),
            proposals: count,
            made: count,
            repeated: count,
            kinds: count.optional(),
            known: count,
            successes: count,
            trials: count,
            kept: count,
            opponent: z.string().optional(),
            score: z.looseObject({ sum: count, count }).optional(),
            labels: z
              .looseObject({
                tasks: count,
                tooFew: count,
                undecided: count,
                tooHard: count,
                tooEasy: count,
                learnt: count,
                shareSum: count,
                right: count,
                checked: count,
                rightLearnt: count.optional(),
                checkedLearnt: count.optional(),
              })
              .optional(),
          })
          .optional(),
        fromFailures: z
          .looseObject({
            failed: count,
            variations: count,
            none: count,
            setAside: count,
            known: count,
            unsolved: count,
            tooHard: count.nullable(),
            tooEasy: count.nullable(),
            kept: count,
          })
          .optional(),
        turns: count,
        episodes: count,
        calls: counts,
        failures: counts,
        components: z.record(z.string(), z.looseObject({ scored: count, score: count, contribution: count })),
      })
      .nullable(),
    batch: z.looseObject({ sequences: count, tokens: count, maskedTokens: count }).nullable(),
    learner: z.record(z.string(), z.unknown()).nullable(),
    heldOut: z.looseObject({ arms, outcomes: counts, meanReward: count }).nullable(),
    criteria: z
      .array(
        z.looseObject({
          name: z.enum(['loss', 'format', 'diversity']),
          value: count.nullable(),
          bound: count,
          met: z.boolean(),
        }),
      )
      .optional(),
    synthesis: z
      .looseObject({
        tasks: count,
        unsolved: count,
        setAside: count,
        known: count,
        actions: count,
        same: count,
        notWorse: count,
        tooFew: count,
        unwritable: count,
        first: count,
        plans: count,
        choices: count,
      })
      .optional(),
    movingMeans: counts.optional(),
    league: z.record(z.string(), z.looseObject({ score: count, steps: count })).optional(),
    alarms: z.array(
      z.looseObject({
        name: z.string(),
        evidence: z.array(
          z.looseObject({ what: z.string(), now: count, before: count.nullable(), limit: count }),
        ),
        remedy: z.string(),
        actions: z.array(z.string()),
      }),
    ),
    standing: z.array(z.string()).optional(),
    decision: z.looseObject({ kind: z.string(), reason: z.string().nullable() }),
    circumstances: z.looseObject({
      endedAt: count,
      seconds: counts,
      learnerSeconds: count.nullable(),
      waitedForOldest: count.optional(),
      idle: z.looseObject({ rollout: count, learner: count }).optional(),
      incidents: z.array(
        z.looseObject({ function: z.string(), kind: z.string(), count, message: z.string() }),
      ),
    }),
  }),
);

const answers = jsonCodec<StepAnswer>(
  'the answer to a step',
  z.looseObject({ stage: z.string(), stageStep: z.int(), answer: z.enum(DECISIONS) }),
);

/** First writer wins: what an earlier attempt has kept stands. */
export async function putStepFacts(
  store: ObjectStore,
  run: string,
  step: StepFacts,
  options: CallOptions = {},
): Promise<void> {
  const key = stepFactsKey(run, step.stage, step.stageStep);
  await store.putIfAbsent(key, facts, { format: FORMAT, ...step }, options);
}

/** The same, of what a person has answered to the step's question. */
export async function putStepAnswer(
  store: ObjectStore,
  run: string,
  answer: StepAnswer,
  options: CallOptions = {},
): Promise<void> {
  await store.putIfAbsent(stepAnswerKey(run, answer.stage, answer.stageStep), answers, answer, options);
}

/** A step as it is read back. */
export interface StoredStep extends StepFacts {
  /** What a person answered, where a question was asked and has been answered. */
  answer: Decision | null;
}

/** Where the facts of a step lie, and the answer to its question where one is kept. */
export interface StepKeys {
  key: string;
  answerKey: string | null;
}

const ANSWER = '.answer.json';

/** Of all steps that have left facts. */
export async function stepPlaces(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<StepKeys[]> {
  const keys = (await store.list(stepsPrefix(run), options)).map(({ key }) => key);
  const answers = new Set(keys.filter((key) => key.endsWith(ANSWER)));
  return keys
    .filter((key) => !answers.has(key))
    .map((key) => {
      const answerKey = key.replace(/\.json$/, ANSWER);
      return { key, answerKey: answers.has(answerKey) ? answerKey : null };
    });
}

/** The steps of a stage that have left facts, in order: those that are done. */
export async function doneSteps(
  store: ObjectStore,
  run: string,
  stage: string,
  options: CallOptions = {},
): Promise<number[]> {
  const prefix = stepFactsPrefix(run, stage);
  const names = (await store.list(prefix, options)).map(({ key }) => key.slice(prefix.length));
  return names.filter((name) => !name.endsWith(ANSWER)).map((name) => Number.parseInt(name, 10));
}

/** null where nothing is kept any more. Throws what the store throws for an object that is damaged, by its name. */
export async function readStep(
  store: ObjectStore,
  { key, answerKey }: StepKeys,
  options: CallOptions = {},
): Promise<StoredStep | null> {
  const [found, answer] = await Promise.all([
    store.find(key, facts, options),
    answerKey === null ? null : store.find(answerKey, answers, options),
  ]);
  if (found === null) return null;
  const { format: _, ...step } = found;
  return { ...step, answer: answer?.answer ?? null };
}

export const inOrderOfRun = (steps: readonly StoredStep[]): StoredStep[] =>
  steps.toSorted((a, b) => a.step - b.step || a.stageStep - b.stageStep);

/**
 * The facts of a run's steps, in the order of the run; a run that is older than they are has none. Throws what the store
 * throws for an object that is damaged, by its name.
 */
export async function readSteps(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<StoredStep[]> {
  const steps = await inParallel(await stepPlaces(store, run, options), (place) =>
    readStep(store, place, options),
  );
  return inOrderOfRun(steps.filter((step) => step !== null));
}
