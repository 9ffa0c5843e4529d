import { readManifest } from '../store/training/checkpoints.ts';
import { rolloutsPrefix, runKey } from '../store/keys.ts';
import { runClaims } from '../store/run/run-claim.ts';
import type { ObjectStore } from '../store/objects/object-store.ts';
import { loadTrajectories } from '../store/rollout/trajectories.ts';
import type { RolloutGroup } from '../core/episode/episode.ts';
import { armName } from '../core/names.ts';
import type { CheckpointRef } from '../core/refs.ts';
import type { ArmTally } from '../core/requests/verification.ts';
import { succeeded } from '../core/episode/reward.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import type { Provenance } from './model-card.ts';

/** Reads from the store how a checkpoint came to be. */
export async function provenanceOf(store: ObjectStore, ref: CheckpointRef): Promise<Provenance> {
  const manifest = await readManifest(store, ref.manifest);
  const { run } = manifest;
  const spec = (await store.find(runKey(run), runClaims))?.spec ?? null;
  const [before, after] = await Promise.all([
    reportOf(store, run, spec, 'before'),
    reportOf(store, run, spec, 'after'),
  ]);
  return { ref, manifest, spec, before, after };
}

/** Success by arm of one of the run's two reports, null where there is none. */
async function reportOf(
  store: ObjectStore,
  run: string,
  spec: CurriculumSpec | null,
  name: 'before' | 'after',
): Promise<ArmTally[] | null> {
  if (spec === null) return null;
  const objects = await store.list(rolloutsPrefix(run, name));
  if (objects.length === 0) return null;
  const groups = await Promise.all(
    objects.map(async ({ key }) => {
      const ref = await store.head(key);
      return ref ? loadTrajectories(store, ref) : null;
    }),
  );
  return tallies(
    groups.filter((group) => group !== null),
    spec,
  );
}

function tallies(groups: readonly RolloutGroup[], spec: CurriculumSpec): ArmTally[] {
  const arms = new Map<string, ArmTally>();
  for (const { tasks, episodes } of groups) {
    for (const { task, outcome } of episodes) {
      const success = outcome ? succeeded(spec.reward.components, outcome) : null;
      if (success === null) continue;
      const { environment, level } = tasks[task]!.ref;
      const arm = { environment, level };
      const tally = arms.get(armName(arm)) ?? { arm, successes: 0, trials: 0 };
      tally.trials++;
      if (success) tally.successes++;
      arms.set(armName(arm), tally);
    }
  }
  return [...arms.values()];
}
