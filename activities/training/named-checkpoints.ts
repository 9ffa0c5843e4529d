import { isDeepStrictEqual } from 'node:util';
import { GradusError } from '../../core/errors.ts';
import type { Plan } from '../../core/algorithms/method.ts';
import { readCheckpointName } from '../../core/fields.ts';
import type { InitializeRequest } from '../../core/requests/run.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { tokenizerConfigOf } from '../../engine/dialect/checkpoint-dialect.ts';
import { modelConfigOf } from '../../engine/hf-model-config.ts';
import { pinsKey } from '../../store/keys.ts';
import { jsonOf, loadModelFiles, textOf } from '../../store/training/checkpoints.ts';
import type { PolicyContent } from '../../store/training/checkpoints.ts';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { pinCheckpoints } from '../../store/training/retention.ts';

// Checkpoints of other runs that stages name: teachers.

const namesIn = ({ teachers, hindsight }: Plan): string[] => [
  ...teachers,
  ...(hindsight?.teacher ? [hindsight.teacher] : []),
];

type Named = Pick<CurriculumSpec, 'checkpoints'>;

/** Throws GradusError('store', 'no-checkpoint') that says which there are. */
export async function namedCheckpoints(
  store: ObjectStore,
  stages: CurriculumSpec['stages'],
  signal: AbortSignal,
): Promise<Named> {
  const names = [...new Set(stages.flatMap((stage) => (stage.kind === 'rl' ? namesIn(stage.plan) : [])))];
  if (names.length === 0) return {};
  const found = names.map(async (name) => [
    name,
    await checkpointOf(store, readCheckpointName(name), { signal }),
  ]);
  return { checkpoints: Object.fromEntries(await Promise.all(found)) as NonNullable<Named['checkpoints']> };
}

/** What a run learns from stays, whatever the retention of the run that it is from says. */
export async function pinNamed(
  store: ObjectStore,
  { run: by, checkpoints = {} }: Named & Pick<CurriculumSpec, 'run'>,
  signal: AbortSignal,
): Promise<void> {
  const runOf = (name: string): string => readCheckpointName(name).run;
  const names = Object.keys(checkpoints);
  await Promise.all(
    [...new Set(names.map(runOf))].map((run) => {
      const pinned = names.filter((name) => runOf(name) === run).map((name) => checkpoints[name]!);
      return pinCheckpoints(store, run, by, pinned, { signal });
    }),
  );
}

/** Leaves them to retention again: what was to be measured is. */
export async function unpinNamed(
  store: ObjectStore,
  { run: by, checkpoints = {} }: Named & Pick<CurriculumSpec, 'run'>,
  signal: AbortSignal,
): Promise<void> {
  const runs = Object.keys(checkpoints).map((name) => readCheckpointName(name).run);
  await store.remove(
    [...new Set(runs)].map((run) => pinsKey(run, by)),
    { signal },
  );
}

/**
 * Throws GradusError('spec', 'invalid') unless a model has the very tokens of the checkpoints that stages name, those
 * hold sequences as long, and those that sample in its place write as it does.
 */
export async function assertSameTokens(
  store: ObjectStore,
  model: Pick<PolicyContent, 'config' | 'files'>,
  { checkpoints = {}, speaking = [] }: Pick<InitializeRequest, 'checkpoints' | 'speaking'>,
  signal: AbortSignal,
): Promise<void> {
  const { vocabSize, maxPositions } = model.config;
  for (const [name, ref] of Object.entries(checkpoints)) {
    const files = await loadModelFiles(store, ref, { signal });
    const config = modelConfigOf(jsonOf(files, 'config.json'), jsonOf(files, 'tokenizer.json'));
    const refuse = (why: string): GradusError =>
      new GradusError('spec', 'invalid', `${name} cannot teach the model of this run: ${why}`);
    if (config.vocabSize !== vocabSize)
      throw refuse(
        `its vocabulary has ${config.vocabSize} tokens, and the model's ${vocabSize}: distributions over other tokens cannot be compared`,
      );
    if (textOf(files, 'tokenizer.json') !== textOf(model.files, 'tokenizer.json'))
      throw refuse('its tokenizer.json differs: begin both with the same checkpoint or import');
    if (config.maxPositions < maxPositions)
      throw refuse(`it holds ${config.maxPositions} positions, and the model ${maxPositions}`);
    const spoken = [files, model.files].map(tokenizerConfigOf);
    if (speaking.includes(name) && !isDeepStrictEqual(spoken[0], spoken[1]))
      throw refuse(
        'its tokenizer_config.json differs, so its turns would not be those that the model writes',
      );
  }
}
