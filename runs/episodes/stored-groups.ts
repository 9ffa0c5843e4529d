import { rolloutsOfRun } from '../../store/keys.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';

/** Where the trajectories of a step of a stage, or of an evaluation after it, lie. */
export interface StepFolder {
  /** The stage, or the name of an evaluation. */
  stage: string;
  step: number;
  /** Ends with `/`. */
  folder: string;
}

/** A rollout group as it counted in its step. */
export interface CountedGroup {
  /** Its number in the step. */
  group: number;
  key: string;
  bytes: number;
}

/** Of a run, in the order of their names. */
export async function stepFolders(store: ObjectStore, run: string): Promise<StepFolder[]> {
  const above = rolloutsOfRun(run);
  const stages = await foldersIn(store, above);
  const steps = await Promise.all(stages.map((stage) => foldersIn(store, stage)));
  return steps.flat().map((folder) => {
    const [stage, number] = folder.slice(above.length, -1).split('/') as [string, string];
    return { stage, step: Number(number), folder };
  });
}

const foldersIn = async (store: ObjectStore, folder: string): Promise<string[]> =>
  (await store.listFolder(folder)).folders.toSorted();

/** The groups of a step by number. Where a ladder has judged a group, what it said at that step counts. */
export async function groupsIn(
  store: ObjectStore,
  folder: string,
  options: CallOptions = {},
): Promise<CountedGroup[]> {
  const counting = new Map<number, CountedGroup>();
  for (const { key, bytes } of await store.list(folder, options)) {
    const [, number, judged] = /\/group-(\d+)(\.judged)?\.json$/.exec(key) ?? [];
    // What is left are verdicts that came late, which later steps have learnt from.
    if (number === undefined) continue;
    const group = Number(number);
    if (judged !== undefined || !counting.has(group)) counting.set(group, { group, key, bytes });
  }
  return [...counting.values()].toSorted((a, b) => a.group - b.group);
}

/** Bytes of trajectories that are held in memory together, unless one group has more. */
const PORTION = 2 ** 20;

/** Groups that are read at a time. */
export function* inPortions<Group extends Pick<CountedGroup, 'bytes'>>(
  groups: readonly Group[],
): Generator<Group[]> {
  let portion: Group[] = [];
  let bytes = 0;
  for (const group of groups) {
    if (portion.length > 0 && bytes + group.bytes > PORTION) {
      yield portion;
      portion = [];
      bytes = 0;
    }
    portion.push(group);
    bytes += group.bytes;
  }
  if (portion.length > 0) yield portion;
}
