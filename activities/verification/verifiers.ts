import type { GroupResult, VerifyRequest } from '../../core/requests/verification.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { Durable } from '../durable.ts';
import { IncidentList } from '../incident-list.ts';
import { verifyAll } from './verify-episodes.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { putTrajectories } from '../../store/rollout/trajectories.ts';
import { judgedEpisodes } from '../training/judge-episodes.ts';
import { tally } from './tally.ts';
import { mergeParts } from '../rollout/trajectory-parts.ts';

export interface VerifierDependencies {
  store: ObjectStore;
  environments: Environments;
}

export type VerifierActivities = Durable<ReturnType<typeof createVerification>>;

export function createVerification(deps: VerifierDependencies) {
  return {
    /** Judges a group's episodes, keeps them with their components as one object, and returns what the stage needs. */
    async verifyGroup(
      { group: request, part, followed, judged }: VerifyRequest,
      signal: AbortSignal,
    ): Promise<GroupResult> {
      const start = Date.now();
      const group = await mergeParts(deps.store, part, followed);
      const incidents = new IncidentList();
      const said = judged && (await deps.store.read(judged, judgedEpisodes, { signal }));
      const episodes = group.episodes.map((episode, i) => ({
        ref: group.tasks[episode.task]!.ref,
        episode,
        ...(said?.[i] && { model: said[i] }),
      }));
      const asker = incidents.asker(signal);
      const outcomes = await verifyAll(deps.environments, episodes, request.reward, asker, request.votes);
      group.episodes.forEach((episode, i) => (episode.outcome = outcomes[i]!));
      const kept = await putTrajectories(deps.store, request, group, { signal });
      return {
        trajectories: kept.ref,
        ...(await tally(request.reward, kept.value, signal)),
        spans: [{ part: 'verification', start, end: Date.now() }],
        incidents: incidents.all,
      };
    },
  };
}
