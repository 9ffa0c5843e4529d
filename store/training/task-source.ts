import { z } from 'zod';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Json } from '../../core/json/json.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { StepProposals } from '../../core/training/proposals.ts';
import type { TaskSource } from '../../core/training/task-source.ts';
import { jsonCodec } from '../codec.ts';
import { sha256Hex } from '../digest.ts';
import { proposalsKey, taskSourceKey } from '../keys.ts';
import type { CallOptions, ObjectStore, StoredObject } from '../objects/object-store.ts';
import type { RolloutPlace } from '../rollout/trajectories.ts';

const FORMAT = 'gradus.tasks/1';

interface StoredSource extends TaskSource {
  format: string;
}

const sources = jsonCodec<StoredSource>(
  `a task source of format ${FORMAT}`,
  z.looseObject({
    format: z.literal(FORMAT),
    arms: z.record(
      z.string(),
      z.array(z.looseObject({ proposal: z.json(), canonical: z.string(), step: z.int() })),
    ),
  }),
);

/** Under the digest of what is in it: equal sources are one object. */
export async function putTaskSource(
  store: ObjectStore,
  run: string,
  { arms }: TaskSource,
  options: CallOptions = {},
): Promise<BlobRef> {
  const text = canonicalJson({ arms, format: FORMAT } as unknown as Json);
  const sha256 = sha256Hex(new TextEncoder().encode(text));
  const value = JSON.parse(text) as StoredSource;
  return (await store.putIfAbsent(taskSourceKey(run, sha256), sources, value, options)).ref;
}

export async function readTaskSource(
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<TaskSource> {
  const { arms } = await store.read(ref, sources, options);
  return { arms };
}

const proposals = jsonCodec<StepProposals>(
  'what the proposals of a step came to',
  z.looseObject({
    source: z.looseObject({ key: z.string() }).nullable(),
    made: z.array(z.looseObject({ environment: z.string(), level: z.int(), index: z.int() })),
    episodes: z.array(z.array(z.looseObject({ kind: z.string() }))),
  }),
);

/** Keeps what the proposals of a step came to; first writer wins, and what is kept is returned. */
export const putProposals = (
  store: ObjectStore,
  { run, stage, step }: RolloutPlace,
  wanted: StepProposals,
  options: CallOptions = {},
): Promise<StoredObject<StepProposals>> =>
  store.putIfAbsent(proposalsKey(run, stage, step), proposals, wanted, options);

export const readProposals = (
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<StepProposals> => store.read(ref, proposals, options);
