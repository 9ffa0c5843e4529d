import type { AssessRequest, PlannedAssessment, WantedVerdict } from '../../core/ladder/requests.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import { withVerdict } from '../../core/episode/reward.ts';
import { askOf, cheaperVerdicts } from './ask-of.ts';
import { loadCandidates } from './candidates.ts';
import type { LadderCandidate, LadderDependencies } from './candidates.ts';
import type { Durable } from '../durable.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import { IncidentList } from '../incident-list.ts';
import { asksKey } from '../../store/keys.ts';
import { wishes } from '../../store/ladder/ladder-codecs.ts';
import { putTrajectories, loadTrajectories } from '../../store/rollout/trajectories.ts';
import { tally } from '../verification/tally.ts';

export type AssessmentActivities = Durable<ReturnType<typeof createAssessment>>;

/**
 * How an evaluation is judged by a tier above the lowest. Every episode that the lowest one passed is asked about,
 * whatever the ladder's policy and budgets would say: a measurement must treat all alike.
 */
export function createAssessment(deps: LadderDependencies) {
  const { store } = deps;

  const load = (request: AssessRequest, asker: HostCaller): Promise<LadderCandidate[]> =>
    loadCandidates(
      deps,
      {
        run: request.run,
        // A measurement counts nothing: what anybody has computed is known to it.
        verification: { rungs: request.rungs, counts: 'computations' },
        steps: [request],
      },
      asker,
    );
  const passed = (
    { scores: [lowest] }: LadderCandidate,
    [{ passAtLeast }]: AssessRequest['rungs'],
  ): boolean => typeof lowest === 'number' && lowest >= passAtLeast;

  return {
    /** What the tier must be asked, and has not said yet. */
    async planAssessment(request: AssessRequest, signal: AbortSignal): Promise<PlannedAssessment> {
      const asks = new Map<string, WantedVerdict>();
      for (const candidate of await load(request, { signal })) {
        const view = candidate.views[1];
        if (!view || view.answer !== null || !passed(candidate, request.rungs)) continue;
        const { run, rungs: tiers } = request;
        const cheaper = cheaperVerdicts(candidate, { rungs: tiers }, 1);
        const ask = askOf(view, candidate.environment.name, { run, reviewers: tiers[1].reviewers, cheaper });
        asks.set(view.digest, { ask, value: 0, basis: null });
      }
      if (asks.size === 0) return { asks: null, count: 0 };
      const key = asksKey(request.run, request.writer, 0);
      const kept = await store.putIfAbsent(key, wishes, [...asks.values()], { signal });
      return { asks: kept.ref, count: kept.value.length };
    },

    /**
     * The groups with the tier's verdicts in place of the lowest one's. What it has not answered is pending; what it
     * cannot judge is no success, or a policy could hide there from what is measured.
     */
    async settleAssessment(request: AssessRequest, signal: AbortSignal): Promise<GroupResult[]> {
      const incidents = new IncidentList();
      const asker = incidents.asker(signal);
      const candidates = await load(request, asker);
      for (const candidate of candidates) {
        if (passed(candidate, request.rungs)) {
          candidate.episode.outcome = outcomeBy(candidate, request);
        }
      }
      return Promise.all(
        request.groups.map(async (ref, i) => {
          // Groups of nothing but infrastructure failures have no candidates.
          const group =
            candidates.find((candidate) => candidate.ref.key === ref.key)?.group ??
            (await loadTrajectories(store, ref, { signal }));
          const judged = { ...group, id: `${group.id}.judged` };
          const { ref: trajectories, value } = await putTrajectories(store, request, judged, { signal });
          return {
            trajectories,
            ...(await tally(request.reward, value, signal)),
            spans: [],
            incidents: i === 0 ? incidents.all : [],
          };
        }),
      );
    },
  };
}

function outcomeBy(
  { episode, scores, views }: LadderCandidate,
  { rungs: tiers, reward }: AssessRequest,
): Outcome {
  const [, { tier, verifier, passAtLeast }] = tiers;
  const fast = episode.outcome!;
  const said = scores[1];
  if (said === undefined) return { kind: 'pending', tier };
  // By the environment's own word the verdict of the lowest tier is all there is to say.
  if (said === 'nothing to ask' || !isRewarded(fast)) return fast;
  const view = views[1];
  const evidence = view?.meaning?.evidence;
  if (typeof said !== 'number') {
    const reason = `${verifier}: ${evidence ?? 'it gave no reason'}`;
    return { kind: 'abstained', reason, ...(said === 'abstained' && { ofSubject: true }) };
  }
  return withVerdict(reward, fast, {
    verifier: LADDER,
    version: `${view!.verifier.name}@${view!.verifier.version}`,
    score: said,
    passed: said >= passAtLeast,
    ...(evidence === undefined ? {} : { evidence }),
  });
}
