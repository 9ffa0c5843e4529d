import { GradusError } from '../core/errors.ts';
import type { RolloutGroup } from '../core/episode.ts';
import type { ReverifyRequest, ReverifyResult, Wish } from '../core/ladder/requests.ts';
import { candidateOf, judgeBy } from './judge.ts';
import { environmentOf } from './environment-of.ts';
import { scoreOf, viewOf } from './climbers.ts';
import type { LadderDependencies, RungView } from './climbers.ts';
import { askOf } from './ask-of.ts';
import type { Durable } from './durable.ts';
import { asksKey, reverifiedKey, rolloutsOfRun, rolloutsPrefix } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';
import { loadTrajectories } from './store/trajectories.ts';
import { findVerdict } from './verdict-cache.ts';

export type ReverifyActivities = Durable<ReturnType<typeof createReverify>>;

/** One stored episode, judged anew. `score` is null where the verifier abstained or has not answered. */
export interface Reverified {
  rollout: string;
  task: number;
  sample: number;
  digest: string | null;
  score: number | null;
  evidence?: string;
}

export function createReverify(deps: LadderDependencies) {
  const { store } = deps;
  return {
    /** What a verifier must be asked about the stored episodes of a run, and has not said yet. */
    async planReverify(request: ReverifyRequest, signal: AbortSignal): Promise<ReverifyResult> {
      const asks = new Map<string, Wish>();
      for await (const { view, environment } of episodesOf(deps, request, signal)) {
        if (!view || asks.has(view.digest)) continue;
        const { name: verifier, version } = view.verifier;
        if (await findVerdict(store, { verifier, version, digest: view.digest }, { signal })) continue;
        asks.set(view.digest, { ask: askOf(view, environment.name, 1), value: 0, basis: null });
      }
      if (asks.size === 0) return { asks: null, count: 0 };
      const ref = await store.putJson(asksKey(request.run, request.writer, 0), [...asks.values()], {
        signal,
      });
      return { asks: ref, count: ((await store.getJson(ref, { signal })) as unknown[]).length };
    },

    /** Keeps the new scores of every stored episode of a run as one object, whose key it returns. */
    async keepReverified(request: ReverifyRequest, signal: AbortSignal): Promise<string> {
      const scores: Reverified[] = [];
      for await (const { key, episode, view, fast, candidate } of episodesOf(deps, request, signal)) {
        const where = { rollout: key, task: episode.task, sample: episode.sample };
        if (fast) {
          const { score, evidence } = await judgeBy(fast, candidate, signal);
          scores.push({ ...where, digest: null, score, ...(evidence !== undefined && { evidence }) });
        } else if (view) {
          const { name: verifier, version } = view.verifier;
          const answer = await findVerdict(store, { verifier, version, digest: view.digest }, { signal });
          scores.push({ ...where, digest: view.digest, ...scoreOf({ ...view, answer }, candidate) });
        }
      }
      const { run, verifier, version, writer } = request;
      return (await store.putJson(reverifiedKey(run, verifier, version, writer), scores, { signal })).key;
    },
  };
}

/** The episodes of a run as they were first judged; later objects of the same group are left out. */
async function* episodesOf(
  { store, environments }: LadderDependencies,
  { run, verifier: name, version, stage }: ReverifyRequest,
  signal: AbortSignal,
) {
  for (const key of await rolloutKeys(store, run, stage, signal)) {
    const group: RolloutGroup = await loadTrajectories(store, (await store.head(key, { signal }))!, {
      signal,
    });
    for (const episode of group.episodes) {
      if (episode.status.kind === 'failed') continue;
      const { ref } = group.tasks[episode.task]!;
      const environment = environmentOf(environments, ref.environment);
      const verifier = environment.verifiers.find((other) => other.name === name);
      if (verifier?.version !== version) {
        const there = verifier ? `has version ${verifier.version} of it` : 'has no such verifier';
        throw new GradusError(
          'verifier',
          'version',
          `${environment.name} ${there}, not ${name} ${version}: start the verifier worker with the module that has it`,
        );
      }
      const candidate = candidateOf(environment, ref, episode);
      const fast = verifier.tier === 'fast' ? verifier : null;
      const view: RungView | null = fast ? null : viewOf(environment, name, candidate);
      yield { key, episode, environment, candidate, fast, view };
    }
  }
}

async function rolloutKeys(
  store: ObjectStore,
  run: string,
  stage: string | undefined,
  signal: AbortSignal,
): Promise<string[]> {
  const prefix = stage === undefined ? rolloutsOfRun(run) : rolloutsPrefix(run, stage);
  const keys = (await store.list(prefix, { signal })).map(({ key }) => key);
  if (keys.length === 0) {
    const where = stage === undefined ? run : `stage ${stage} of ${run}`;
    throw new GradusError('store', 'no-rollouts', `${where} has no episodes in this store`);
  }
  return keys.filter((key) => !/\.(judged|late-[^/]+)\.json$/.test(key));
}
