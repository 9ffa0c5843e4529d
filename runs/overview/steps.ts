import { GradusError } from '../../core/errors.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { inOrderOfRun, readStep, stepPlaces } from '../../store/training/step-facts.ts';
import type { StepKeys, StoredStep } from '../../store/training/step-facts.ts';
import { FactCache } from '../find/fact-cache.ts';
import { runIdentity } from './run-identity.ts';

export interface StepsOfRun {
  /** In the order of the run. */
  steps: StoredStep[];
  /** Facts that are damaged, or of another format, and why. */
  unreadable: { key: string; message: string }[];
}

/** With another number what was cached is read anew. */
const FORMAT = 1;

/** So many are read again rather than kept: a run that goes on would have all of its steps written after each one. */
const TOO_FEW = 16;

/** Steps that were read, by the keys of their facts. */
type Known = Record<string, StoredStep>;

/**
 * The facts of a run's steps: what is written once is read once, and kept on the local disk. A run that leaves none, or
 * that there is not, has none. Throws what the store throws when it is away.
 */
export async function stepsOf(
  store: ObjectStore,
  run: string,
  { cache = new FactCache() }: { cache?: FactCache } = {},
): Promise<StepsOfRun> {
  const [identity, places] = await Promise.all([runIdentity(store, run), stepPlaces(store, run)]);
  const of = ['steps', FORMAT, identity];
  const known = decode(await cache.read(of));
  const unreadable: StepsOfRun['unreadable'] = [];
  const isKnown = ({ key, answerKey }: StepKeys): boolean =>
    known[key] !== undefined && (answerKey === null || known[key].answer !== null);
  const missing = places.filter((place) => !isKnown(place));
  await inParallel(missing, async (place) => {
    try {
      const step = await readStep(store, place);
      if (step !== null) known[place.key] = step;
    } catch (error) {
      if (!(error instanceof GradusError) || error.retryable) throw error;
      unreadable.push({ key: place.key, message: error.message });
    }
  });
  if (missing.length - unreadable.length > TOO_FEW) await cache.write(of, encode(known));
  const steps = places.flatMap(({ key }) => known[key] ?? []);
  return { steps: inOrderOfRun(steps), unreadable };
}

const encode = (known: Known): Uint8Array => new TextEncoder().encode(JSON.stringify(known));

const decode = (bytes: Uint8Array | undefined): Known =>
  bytes === undefined ? {} : (JSON.parse(new TextDecoder().decode(bytes)) as Known);
