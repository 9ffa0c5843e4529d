import { GradusError } from '../../core/errors.ts';
import type { GroupRequest, OpenGroup } from '../../core/requests/rollout.ts';
import { roundedTo } from '../../core/schema/policy.ts';
import type { Policy, TurnPolicy } from '../../engine/policy.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadModelFiles } from '../../store/training/checkpoints.ts';
import { chooseVersion, chosenVersion, findVersion } from '../../store/training/versions.ts';
import type { TurnPlace, Version } from '../../store/training/versions.ts';
import type { PolicyLease, PolicyProvider } from './policies.ts';
import { Speakers } from './speakers.ts';

/** A group whose episodes go on with newer weights than those that they began with. */
type ContinuingGroup = OpenGroup & Required<Pick<GroupRequest, 'continues'>>;

export const isContinuing = (group: OpenGroup): group is ContinuingGroup => group.continues !== undefined;

/**
 * Episodes that go on with the newest weights, turn by turn. Which weights sample a turn is kept before it is sampled, so
 * that another attempt samples the same tokens, and its calls ask for the same under the same keys.
 */
export class NewestWeights {
  private readonly store: ObjectStore;
  private readonly policies: PolicyProvider;
  private readonly speakers = new Speakers();
  /** The newest that was seen of each stage: the next look begins there. */
  private readonly seen = new Map<string, Version>();
  private readonly looking = new Map<string, Promise<Version>>();

  constructor(store: ObjectStore, policies: PolicyProvider) {
    this.store = store;
    this.policies = policies;
  }

  /** What speaks for a group. It holds no decoder: an activity that did, while its turns wait for one, would wait for itself. */
  async speaker({ checkpoint }: OpenGroup, signal: AbortSignal): Promise<PolicyLease> {
    const files = await loadModelFiles(this.store, checkpoint, { signal });
    return { ...this.speakers.of(files), policy: releasing(new Set()), release: () => undefined };
  }

  /** What samples the turns of one episode. `policy` samples none of them, and lets go of its caches wherever they are. */
  episode(group: ContinuingGroup, episode: number, signal: AbortSignal) {
    const used = new Set<Policy>();
    return {
      policy: releasing(used),
      turnPolicy: async (turn: number | string): Promise<TurnPolicy> => {
        // The first turn of an episode needs no choice: the group has begun with these.
        const { checkpoint } =
          turn === 0 ? group : await this.choose(group, { ...placeOf(group), episode, turn }, signal);
        const { run, policy } = group;
        const lease = await this.policies.lease(checkpoint, { run, signal, dtype: roundedTo(policy) });
        used.add(lease.policy);
        const { weights } = checkpoint;
        return {
          policy: lease.policy,
          ...(weights !== group.checkpoint.weights && { weights }),
          release: () => lease.release(),
        };
      },
    };
  }

  /** Which weights sample a turn: those that were chosen before, or that the followed run had there, or the newest. */
  private async choose(group: ContinuingGroup, place: TurnPlace, signal: AbortSignal): Promise<Version> {
    const { run, stage } = group;
    const { follow } = group.continues;
    const options = { signal };
    if (follow !== undefined) {
      const theirs = await chosenVersion(this.store, { ...place, run: follow }, options);
      const own = theirs && (await findVersion(this.store, { run, stage, after: theirs.after }, options));
      if (own) return chooseVersion(this.store, place, own, options);
    }
    return chooseVersion(this.store, place, await this.newest(group), options);
  }

  /** For all who ask at one time by one look, which is called off by none of them. */
  private async newest({ run, stage, checkpoint, continues }: ContinuingGroup): Promise<Version> {
    const name = `${run}/${stage}`;
    const begun: Version = { after: continues.after, checkpoint };
    const looking = this.looking.get(name) ?? this.look(run, stage, begun, this.seen.get(name));
    this.looking.set(name, looking);
    const found = await looking.finally(() => this.looking.delete(name));
    this.seen.set(name, found);
    // A look that another group began may have been too early for this one.
    return newerOf(begun, found);
  }

  private async look(
    run: string,
    stage: string,
    begun: Version,
    seen: Version | undefined,
  ): Promise<Version> {
    // The run may have been deleted, and another one have its name: what was seen counts if it is still there.
    const still =
      seen && seen.after > begun.after
        ? await findVersion(this.store, { run, stage, after: seen.after })
        : null;
    for (let newest = still ?? begun; ;) {
      const next = await findVersion(this.store, { run, stage, after: newest.after + 1 });
      if (next === null) return newest;
      newest = next;
    }
  }
}

const releasing = (used: ReadonlySet<Policy>): Policy => ({
  sample: () => Promise.reject(new GradusError('policy', 'no-turn', 'each turn has weights of its own')),
  release: (session) => used.forEach((policy) => policy.release(session)),
  close: async () => undefined,
});

const newerOf = (one: Version, other: Version | undefined): Version =>
  other && other.after > one.after ? other : one;

const placeOf = ({ run, stage, step, group }: OpenGroup) => ({ run, stage, step, group });
