import { verifyAll } from '../../activities/verification/verify-episodes.ts';
import { viewsOf } from '../../activities/ladder/candidates.ts';
import type { TierView } from '../../activities/ladder/candidates.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { putTrajectories } from '../../store/rollout/trajectories.ts';
import { putVerdict } from '../../activities/verification/verdict-cache.ts';
import type { Episode } from '../../core/episode/episode.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import type { BlobRef, TaskRef } from '../../core/refs.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { TierSpec } from '../../core/schema/verification.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type { Environment } from '../../environments/contract/environment.ts';
import { hostedHere, inThisProcess } from '../../environments/host/hosted-environment.ts';

// Groups and verdicts for tests of the ladder's activities, without workflows.

/** What a tier's worker found. */
export type Found =
  | { kind: 'scored'; score: number }
  | { kind: 'measured'; values: Record<string, number> }
  | { kind: 'abstained'; type: string; reason: string };

/** The ladder's verdict is all that counts. */
export const rewardBy = (lowest: TierSpec): RewardSpec => ({
  components: [{ verifier: LADDER, role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
  ladder: { verifier: lowest.verifier, passAtLeast: lowest.passAtLeast },
});

/** An episode of one token. */
export const answered = (answer: string, sample: number, token: number): Episode => ({
  sample,
  task: 0,
  tokens: [token],
  mask: [1],
  samplerLogprobs: [-1],
  turns: [],
  status: { kind: 'answered', answer },
});

/** A group as the fast tier leaves it. */
export async function judgedGroup(
  store: ObjectStore,
  environment: Environment,
  ref: TaskRef,
  episodes: Episode[],
  place: { run: string; stage: string; step: number; id: string },
  reward: RewardSpec,
): Promise<BlobRef> {
  const outcomes = await verifyAll(
    inThisProcess([environment]),
    episodes.map((episode) => ({ ref, episode })),
    reward,
    { signal },
  );
  episodes.forEach((episode, i) => (episode.outcome = outcomes[i]!));
  const tasks = [{ ref, prompt: '', promptTokens: [0] }];
  const group = { id: place.id, weights: 'w', temperature: 1, tasks, episodes };
  return (await putTrajectories(store, place, group)).ref;
}

const { signal } = new AbortController();

/** What a verifier would be asked about an episode. */
export async function viewOf(
  environment: Environment,
  verifier: string,
  task: TaskRef,
  episode: Episode,
): Promise<TierView> {
  const [view] = await viewsOf([{ environment: hostedHere(environment), task, episode }], verifier, {
    signal,
  });
  if (!view || view instanceof Error) throw new Error(`nothing to ask ${verifier}: ${String(view)}`);
  return view;
}

/** Puts what a verifier said of an answer where every run finds it; gives the subject's digest. */
export async function keepAnswer(
  store: ObjectStore,
  environment: Environment,
  ref: TaskRef,
  answer: string,
  verifier: string,
  found: Found,
): Promise<string> {
  const view = await viewOf(environment, verifier, ref, answered(answer, 0, 0));
  const base = { format: 'gradus.verdict/1' as const, verifier, version: '1', digest: view.digest };
  const kept: TierAnswer = { ...base, spent: { seconds: 0, usd: 0 }, ...found };
  await putVerdict(store, base, kept);
  return view.digest;
}
