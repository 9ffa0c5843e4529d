import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import type {
  Reverification,
  ReverifyRequest,
  ReverifyResult,
  WantedVerdict,
} from '../../core/ladder/requests.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import { meaningsOf, viewsOf } from './candidates.ts';
import type { LadderDependencies, TierView, Viewed } from './candidates.ts';
import type { Meaning, HostedVerdict } from '../../environments/host/asks.ts';
import { askOf } from './ask-of.ts';
import { concurrency, givenName, name, runName } from '../../core/fields.ts';
import { didYouMean } from '../../core/did-you-mean.ts';
import { parseStrictly } from '../../core/schema/strict.ts';
import { assertRun, assertStage } from '../../store/run/find-run.ts';
import type { Durable } from '../durable.ts';
import { jsonCodec } from '../../store/codec.ts';
import { wishes } from '../../store/ladder/ladder-codecs.ts';
import { asksKey, reverifiedKey } from '../../store/keys.ts';
import { loadTrajectories, rolloutKeys } from '../../store/rollout/trajectories.ts';
import { findVerdict } from '../verification/verdict-cache.ts';

export type ReverifyActivities = Durable<ReturnType<typeof createReverify>>;

/** One stored episode, judged anew. `score` is null where the verifier abstained or has not answered. */
interface Reverified {
  rollout: string;
  task: number;
  sample: number;
  digest: string | null;
  score: number | null;
  evidence?: string;
}

const reverified = jsonCodec<Reverified[]>(
  'scores of stored episodes',
  z.array(z.looseObject({ rollout: z.string(), score: z.number().nullable() })),
);

const reverifySchema = z.strictObject({
  run: runName,
  verifier: givenName,
  version: givenName,
  stage: name.optional(),
  concurrency: concurrency.default(4),
});

export function createReverify(deps: LadderDependencies) {
  const { store } = deps;
  return {
    /** Reads what a person wrote. Throws GradusError('spec', 'invalid') or ('store', 'no-run' | 'no-stage'). */
    async openReverify(written: unknown, signal: AbortSignal): Promise<Reverification> {
      const { stage, ...read } = parseStrictly(reverifySchema, written, 'the re-verification');
      await assertRun(store, read.run, { signal });
      if (stage !== undefined) await assertStage(store, read.run, stage, { signal });
      return { ...read, ...(stage !== undefined && { stage }) };
    },

    /** What a verifier must be asked about the stored episodes of a run, and has not said yet. */
    async planReverify(request: ReverifyRequest, signal: AbortSignal): Promise<ReverifyResult> {
      const asks = new Map<string, WantedVerdict>();
      for await (const { view, viewed } of episodesOf(deps, request, signal)) {
        if (!view || asks.has(view.digest)) continue;
        const { name: verifier, version } = view.verifier;
        if (await findVerdict(store, { verifier, version, digest: view.digest }, { signal })) continue;
        const ask = askOf(view, viewed.environment.name, { run: request.run, reviewers: 1 });
        asks.set(view.digest, { ask, value: 0, basis: null });
      }
      if (asks.size === 0) return { asks: null, count: 0 };
      const key = asksKey(request.run, request.writer, 0);
      const kept = await store.putIfAbsent(key, wishes, [...asks.values()], { signal });
      return { asks: kept.ref, count: kept.value.length };
    },

    /** Keeps the new scores of every stored episode of a run as one object, whose key it returns. */
    async keepReverified(request: ReverifyRequest, signal: AbortSignal): Promise<string> {
      const scores: Reverified[] = [];
      for await (const { key, viewed, fast, view } of episodesOf(deps, request, signal)) {
        const { environment, task: ref, episode } = viewed;
        const where = { rollout: key, task: episode.task, sample: episode.sample };
        if (fast) {
          const [said] = await environment.verdicts([request.verifier], [{ ref, episode }], { signal });
          scores.push({ ...where, digest: null, ...meaningOf(said!) });
        } else if (view) {
          const { name: verifier, version } = view.verifier;
          const answer = await findVerdict(store, { verifier, version, digest: view.digest }, { signal });
          const [meaning] = await meaningsOf([{ ...viewed, view: { ...view, answer } }], { signal });
          const { fault: _, ...said } = meaning!;
          scores.push({ ...where, digest: view.digest, ...said });
        }
      }
      const { run, verifier, version, writer } = request;
      const key = reverifiedKey(run, verifier, version, writer);
      return (await store.putIfAbsent(key, reverified, scores, { signal })).ref.key;
    },
  };
}

/** The episodes of a run as they were first judged; later objects of the same group are left out. */
async function* episodesOf(
  { store, environments }: LadderDependencies,
  { run, verifier: name, version, stage }: ReverifyRequest,
  signal: AbortSignal,
) {
  for (const key of await rolloutKeys(store, run, stage, { signal })) {
    const group: RolloutGroup = await loadTrajectories(store, (await store.head(key, { signal }))!, {
      signal,
    });
    const members: Viewed[] = [];
    for (const episode of group.episodes) {
      if (episode.status.kind === 'failed') continue;
      const { ref: task } = group.tasks[episode.task]!;
      const environment = environmentOf(environments, task.environment);
      assertVerifier(environment, name, version);
      members.push({ environment, task, episode });
    }
    const views = (await viewsOf(members, name, { signal })).map((view): TierView | null => {
      if (view instanceof GradusError) throw view;
      return view;
    });
    for (const [i, viewed] of members.entries()) {
      const fast = viewed.environment.verifiers.some((known) => known.name === name && known.tier === 'fast');
      yield { key, viewed, fast, view: views[i]! };
    }
  }
}

/** Throws GradusError('verifier', 'version') where an environment has no such verifier, or another version of it. */
export function assertVerifier(
  environment: { name: string; verifiers: readonly { name: string; version: string }[] },
  name: string,
  version: string,
): void {
  const verifier = environment.verifiers.find((other) => other.name === name);
  if (verifier?.version === version) return;
  const names = environment.verifiers.map((other) => other.name);
  throw new GradusError(
    'verifier',
    'version',
    verifier
      ? `${environment.name} has version ${verifier.version} of ${name}, not ${version}: give that version, or start the verifier worker with the module that has ${version}`
      : `${environment.name} has no verifier "${name}"${didYouMean(name, names)}`,
  );
}

function meaningOf(said: HostedVerdict[] | GradusError): Meaning {
  if (said instanceof GradusError) return { score: null, evidence: said.message };
  const { score, evidence } = said[0]!;
  return { score, ...(evidence !== undefined && { evidence }) };
}
