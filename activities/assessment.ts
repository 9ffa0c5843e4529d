import type { AssessRequest, PlannedAssessment, Wish } from '../core/ladder/requests.ts';
import { LADDER } from '../core/ladder/requests.ts';
import type { Outcome } from '../core/outcome.ts';
import type { GroupResult } from '../core/requests.ts';
import { askOf } from './ask-of.ts';
import { loadClimbers, scoreOf } from './climbers.ts';
import type { Climber, LadderDependencies } from './climbers.ts';
import type { Durable } from './durable.ts';
import { judge } from './judge.ts';
import { asksKey } from './store/keys.ts';
import { loadTrajectories, saveTrajectories } from './store/trajectories.ts';
import { tally } from './tally.ts';

export type AssessmentActivities = Durable<ReturnType<typeof createAssessment>>;

/**
 * How an evaluation is judged by a rung above the lowest. Every episode that the lowest one passed is asked about,
 * whatever the ladder's policy and budgets would say: a measurement must treat all alike.
 */
export function createAssessment(deps: LadderDependencies) {
  const { store } = deps;

  const load = (request: AssessRequest, signal: AbortSignal): Promise<Climber[]> =>
    loadClimbers(deps, { run: request.run, verification: request, steps: [request] }, signal);
  const passed = ({ scores: [lowest] }: Climber, [{ passAtLeast }]: AssessRequest['rungs']): boolean =>
    typeof lowest === 'number' && lowest >= passAtLeast;

  return {
    /** What the rung must be asked, and has not said yet. */
    async planAssessment(request: AssessRequest, signal: AbortSignal): Promise<PlannedAssessment> {
      const asks = new Map<string, Wish>();
      for (const climber of await load(request, signal)) {
        const view = climber.views[1];
        if (!view || view.answer !== null || !passed(climber, request.rungs)) continue;
        const ask = askOf(view, climber.environment.name, request.rungs[1].reviewers);
        asks.set(view.digest, { ask, value: 0, basis: null });
      }
      if (asks.size === 0) return { asks: null, count: 0 };
      const key = asksKey(request.run, request.writer, 0);
      const ref = await store.putJson(key, [...asks.values()], { signal });
      return { asks: ref, count: ((await store.getJson(ref, { signal })) as unknown[]).length };
    },

    /** The groups with the rung's verdicts in place of the lowest one's. What it has not answered is pending. */
    async settleAssessment(request: AssessRequest, signal: AbortSignal): Promise<GroupResult[]> {
      const climbers = await load(request, signal);
      for (const climber of climbers) {
        if (passed(climber, request.rungs)) {
          climber.episode.outcome = await outcomeBy(climber, request, signal);
        }
      }
      return Promise.all(
        request.groups.map(async (ref) => {
          // Groups of nothing but infrastructure failures have no climbers.
          const group =
            climbers.find((climber) => climber.ref.key === ref.key)?.group ??
            (await loadTrajectories(store, ref, { signal }));
          const judged = { ...group, id: `${group.id}.judged` };
          const trajectories = await saveTrajectories(store, { ...request }, judged, { signal });
          return { trajectories, ...tally(request.reward, judged), spans: [] };
        }),
      );
    },
  };
}

function outcomeBy(
  climber: Climber,
  { rungs, reward }: AssessRequest,
  signal: AbortSignal,
): Promise<Outcome> {
  const { environment, group, episode, candidate } = climber;
  const view = climber.views[1];
  const [, { tier, verifier, passAtLeast }] = rungs;
  if (view?.answer === null) return Promise.resolve({ kind: 'pending', tier });
  const { score, evidence } = view
    ? scoreOf(view, candidate)
    : { score: null, evidence: 'nothing to ask about' };
  return judge(environment, group.tasks[episode.task]!.ref, episode, reward, signal, {
    verifier: LADDER,
    version: view ? `${view.verifier.name}@${view.verifier.version}` : verifier,
    score,
    passed: score !== null && score >= passAtLeast,
    ...(evidence === undefined ? {} : { evidence }),
  });
}
