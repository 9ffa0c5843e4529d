import type { GroupResult, VerifyRequest } from '../core/requests.ts';
import { environmentOf } from './environment-of.ts';
import type { Environments } from './environment-of.ts';
import type { Durable } from './durable.ts';
import { judge } from './judge.ts';
import type { ObjectStore } from './store/object-store.ts';
import { saveTrajectories } from './store/trajectories.ts';
import { tally } from './tally.ts';
import { mergeParts } from './trajectory-parts.ts';

export interface VerifierDependencies {
  store: ObjectStore;
  environments: Environments;
}

export type VerifierActivities = Durable<ReturnType<typeof createVerification>>;

export function createVerification(deps: VerifierDependencies) {
  return {
    /** Judges a group's episodes, keeps them with their components as one object, and returns what the stage needs. */
    async verifyGroup({ group: request, parts }: VerifyRequest, signal: AbortSignal): Promise<GroupResult> {
      const start = Date.now();
      const group = await mergeParts(deps.store, parts);
      for (const episode of group.episodes) {
        const { ref } = group.tasks[episode.task]!;
        const environment = environmentOf(deps.environments, ref.environment);
        episode.outcome = await judge(environment, ref, episode, request.reward, signal);
      }
      const trajectories = await saveTrajectories(deps.store, request, group, { signal });
      return {
        trajectories,
        ...tally(request.reward, group),
        spans: [{ part: 'verification', start, end: Date.now() }],
      };
    },
  };
}
