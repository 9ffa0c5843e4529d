import type { Episode } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import type { TaskRef } from '../../core/refs.ts';
import { composeReward } from '../../core/episode/reward.ts';
import type { VerdictOfVerifier } from '../../core/episode/reward.ts';
import type { RewardSpec } from '../../core/spec.ts';
import type { Said } from '../../environments/host/asks.ts';
import type { Asker, HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';

/** An episode that no verifier has been asked about. */
export interface Unverified {
  ref: TaskRef;
  episode: Episode;
  /** What its dearest rung says. */
  climbed?: VerdictOfVerifier;
}

/**
 * Asks the fast verifiers that the reward names, and composes what they say, in order. The component `ladder` is what
 * `climbed` says, and as long as no dearer rung has spoken, what the lowest rung does. An episode that a verifier
 * cannot even be asked about, or whose task cannot be made, is `failed` at that boundary.
 */
export async function verifyAll(
  environments: Environments,
  episodes: readonly Unverified[],
  reward: RewardSpec,
  asker: Asker,
): Promise<Outcome[]> {
  const outcomes = new Map<Unverified, Outcome>();
  const byEnvironment = new Map<string, Unverified[]>();
  for (const one of episodes) {
    const { status } = one.episode;
    if (status.kind === 'failed') {
      outcomes.set(one, { kind: 'failed', boundary: status.boundary, reason: status.reason });
      continue;
    }
    const { environment } = one.ref;
    byEnvironment.set(environment, [...(byEnvironment.get(environment) ?? []), one]);
  }
  await Promise.all(
    [...byEnvironment].map(async ([name, members]) => {
      const said = await verdictsOf(environmentOf(environments, name), members, reward, asker);
      members.forEach((one, i) => outcomes.set(one, outcomeOf(one, said[i]!, reward)));
    }),
  );
  return episodes.map((one) => outcomes.get(one)!);
}

/** `verifyAll` of one. */
export async function verify(
  environment: HostedEnvironment,
  episode: Unverified,
  reward: RewardSpec,
  asker: Asker,
): Promise<Outcome> {
  const [outcome] = await verifyAll(
    new Map([[episode.ref.environment, environment]]),
    [episode],
    reward,
    asker,
  );
  return outcome!;
}

async function verdictsOf(
  environment: HostedEnvironment,
  members: readonly Unverified[],
  { components, ladder }: RewardSpec,
  asker: Asker,
): Promise<(Said[] | GradusError)[]> {
  const named = components.map(({ verifier }) => (verifier === LADDER ? ladder!.verifier : verifier));
  // Where the lowest rung has been overruled by a dearer one, it is not asked again.
  const others = components.filter(({ verifier }) => verifier !== LADDER).map(({ verifier }) => verifier);
  const ask = async (verifiers: readonly string[], some: readonly Unverified[]) =>
    verifiers.length === 0
      ? some.map((): Said[] => [])
      : environment.verdicts([...new Set(verifiers)], some, asker);
  const climbed = members.filter(({ climbed }) => climbed);
  const fresh = members.filter(({ climbed }) => !climbed);
  const said = new Map<Unverified, Said[] | GradusError>();
  const [ofClimbed, ofFresh] = await Promise.all([ask(others, climbed), ask(named, fresh)]);
  climbed.forEach((one, i) => said.set(one, ofClimbed[i]!));
  fresh.forEach((one, i) => said.set(one, ofFresh[i]!));
  return members.map((one) => said.get(one)!);
}

function outcomeOf(
  { episode: { status }, climbed }: Unverified,
  said: Said[] | GradusError,
  reward: RewardSpec,
): Outcome {
  if (said instanceof GradusError) return { kind: 'failed', boundary: said.boundary, reason: said.message };
  const by = (name: string): VerdictOfVerifier => {
    const { fault: _, ...verdict } = said.find(({ verifier }) => verifier === name)!;
    return verdict;
  };
  const verdicts = reward.components.map(({ verifier }) => {
    if (verifier !== LADDER) return by(verifier);
    return climbed ?? lowestRung(by(reward.ladder!.verifier), reward.ladder!.passAtLeast);
  });
  const composed = composeReward(reward.components, verdicts);
  if (composed.kind !== 'scored' || status.kind !== 'truncated') return composed;
  return { ...composed, kind: 'truncated', limit: status.limit };
}

function lowestRung(said: VerdictOfVerifier, passAtLeast: number): VerdictOfVerifier {
  const version = `${said.verifier}@${said.version}`;
  return { ...said, verifier: LADDER, version, passed: said.score !== null && said.score >= passAtLeast };
}
