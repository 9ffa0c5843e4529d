import { isDeepStrictEqual } from 'node:util';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import { succeeded } from '../../core/episode/reward.ts';
import type { GradusError } from '../../core/errors.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { askByEnvironment } from '../../environments/host/ask-by-environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';

/**
 * What to say to whoever tries tasks again that were failed in a group, in order: made of the first episode of each that
 * is no success. An error where the environment could not say it.
 */
export async function hintsFor(
  environments: Environments,
  refs: readonly TaskRef[],
  group: RolloutGroup,
  { components }: RewardSpec,
  asker: HostCaller,
): Promise<(string | GradusError)[]> {
  const failed = refs.map((ref) => {
    const task = group.tasks.findIndex((there) => isDeepStrictEqual(there.ref, ref));
    const episode = group.episodes.find(
      (one) => one.task === task && succeeded(components, one.outcome!) === false,
    );
    if (!episode) throw new RangeError(`no episode of ${JSON.stringify(ref)} has failed in ${group.id}`);
    return { ref, episode, evidence: evidenceOf(episode) };
  });
  return askByEnvironment(
    failed,
    ({ ref }) => environmentOf(environments, ref.environment),
    (environment, some) => environment.hints(some, asker),
  );
}

/** What verifiers said that did not give their full score. */
const evidenceOf = ({ outcome }: Episode): string[] =>
  outcome && isRewarded(outcome)
    ? outcome.components.flatMap(({ score, evidence }) =>
        score !== null && score < 1 && evidence !== undefined ? [evidence] : [],
      )
    : [];
