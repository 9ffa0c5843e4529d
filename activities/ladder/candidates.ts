import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import type { ModelVerdict } from '../../core/episode/outcome.ts';
import { isTransientAbstention } from '../../core/ladder/abstentions.ts';
import { ladderOf, learnedVerdict } from '../../core/ladder/learned-tier.ts';
import type { LearnedVerdict, WholeLadder } from '../../core/ladder/learned-tier.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import type { LadderRequest, StepGroups } from '../../core/ladder/requests.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { basisOf } from '../../core/ladder/policy.ts';
import type { LadderDecision, TierScore } from '../../core/ladder/policy.ts';
import type { Json } from '../../core/json/json.ts';
import { GradusError } from '../../core/errors.ts';
import type { BlobRef, TaskRef } from '../../core/refs.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type { Meaning } from '../../environments/host/asks.ts';
import type { TierFacts } from '../../environments/host/facts.ts';
import type { HostCaller, HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { sha256Hex } from '../../store/digest.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { findVerdict, heardVerdict } from '../verification/verdict-cache.ts';

export interface LadderDependencies {
  store: ObjectStore;
  environments: Environments;
}

/** What one tier above the lowest would judge of an episode, and what it has said. */
export interface TierView {
  verifier: TierFacts;
  subject: Json;
  digest: string;
  answer: TierAnswer | null;
  /** What the answer means for the candidate; null as long as there is none. */
  meaning: Meaning | null;
}

/** An episode on the ladder. */
export interface LadderCandidate {
  id: string;
  step: StepGroups;
  group: RolloutGroup;
  ref: BlobRef;
  episode: Episode;
  task: TaskRef;
  environment: HostedEnvironment;
  /** By tier; null for the lowest, and where there is nothing to ask. */
  views: (TierView | null)[];
  /** Tiers whose question could not be put: the environment's mistake, which says nothing of the subject. */
  broken: Set<number>;
  scores: TierScore[];
  /** What a reward model says of it in the place of the lowest tier. */
  learned: LearnedVerdict | undefined;
  digests: (string | null)[];
}

/**
 * The episodes of these steps with everything that is known of them: what the fast tier said when they were judged,
 * and what the cache of verdicts holds now, or, where a budget counts verdicts, what the run has heard of it.
 */
export async function loadCandidates(
  { store, environments }: LadderDependencies,
  {
    run,
    verification: { rungs: tiers, counts, learned },
    steps,
  }: {
    run: string;
    verification: Pick<LadderRequest['verification'], 'rungs' | 'counts' | 'learned'>;
    steps: readonly StepGroups[];
  },
  asker: HostCaller,
): Promise<LadderCandidate[]> {
  const { signal } = asker;
  const candidates: LadderCandidate[] = [];
  for (const step of steps) {
    const groups = await Promise.all(step.groups.map((ref) => loadTrajectories(store, ref, { signal })));
    groups.forEach((group, i) => {
      for (const episode of group.episodes) {
        const { ref: task } = group.tasks[episode.task]!;
        if (episode.status.kind === 'failed') continue;
        const id = `${step.stage}/${step.step}/${group.id}/${episode.task}/${episode.sample}`;
        const model = modelVerdictOf(episode);
        candidates.push({
          id,
          step,
          group,
          ref: step.groups[i]!,
          episode,
          task,
          environment: environmentOf(environments, task.environment),
          views: [null],
          broken: new Set(),
          scores: [],
          learned: learned && model && learnedVerdict(model, id, learned),
          digests: [],
        });
      }
    });
  }
  for (const [tier, { verifier }] of tiers.entries()) {
    if (tier === 0) continue;
    const views = await viewsOf(candidates, verifier, asker);
    candidates.forEach((candidate, i) => {
      const view = views[i]!;
      if (view instanceof GradusError) candidate.broken.add(tier);
      candidate.views.push(view instanceof GradusError ? null : view);
    });
  }
  for (const candidate of candidates) candidate.digests = candidate.views.map((view) => view?.digest ?? null);
  const found = new Map<string, Promise<TierAnswer | null>>();
  for (const { views } of candidates) {
    for (const view of views) {
      if (view === null) continue;
      const { name, version } = view.verifier;
      const key = `${name}/${version}/${view.digest}`;
      const asked = { verifier: name, version, digest: view.digest };
      if (!found.has(key)) {
        found.set(
          key,
          counts === 'verdicts'
            ? heardVerdict(store, run, asked, signal)
            : findVerdict(store, asked, { signal, run }),
        );
      }
      view.answer = await found.get(key)!;
    }
  }
  await Promise.all(tiers.slice(1).map((_, i) => interpret(candidates, i + 1, asker)));
  for (const candidate of candidates) {
    candidate.scores = candidate.views.map((view, tier) => {
      if (tier === 0) return candidate.learned?.expected ?? fastScore(candidate.episode);
      return candidate.broken.has(tier) ? 'passing' : scoreOf(view);
    });
  }
  return candidates;
}

/** Whose verdict is asked for. */
export type Viewed = Pick<LadderCandidate, 'environment' | 'task' | 'episode'>;

/**
 * What a verifier would judge of these, in order; null where there is nothing to ask, and an error where the environment
 * could not say.
 */
export async function viewsOf(
  viewed: readonly Viewed[],
  name: string,
  asker: HostCaller,
): Promise<(TierView | GradusError | null)[]> {
  const views: (TierView | GradusError | null)[] = [];
  await byEnvironment(viewed, async (environment, members) => {
    const verifier = environment.verifiers.find((other) => other.name === name);
    const asked = verifier?.served && members.map(({ one }) => ({ ref: one.task, episode: one.episode }));
    const subjects = asked && (await environment.subjects(name, asked, asker));
    members.forEach(({ at }, i) => {
      const subject = subjects?.[i] ?? null;
      views[at] =
        subject === null || subject instanceof GradusError ? subject : viewOf(verifier as TierFacts, subject);
    });
  });
  return views;
}

function viewOf(verifier: TierFacts, subject: Json): TierView {
  const digest = sha256Hex(new TextEncoder().encode(canonicalJson(subject)));
  return { verifier, subject, digest, answer: null, meaning: null };
}

/** Fills in what a tier's answers mean. */
async function interpret(
  candidates: readonly LadderCandidate[],
  tier: number,
  asker: HostCaller,
): Promise<void> {
  const answered = candidates.filter(({ views }) => views[tier]?.answer);
  const meanings = await meaningsOf(
    answered.map((candidate) => ({ ...candidate, view: candidate.views[tier]! })),
    asker,
  );
  answered.forEach(({ views }, i) => (views[tier]!.meaning = meanings[i]!));
}

/** What the answers of these views mean for their candidates, in order; an answer that is missing means nothing yet. */
export async function meaningsOf(
  viewed: readonly (Viewed & { view: TierView })[],
  asker: HostCaller,
): Promise<Meaning[]> {
  const meanings: Meaning[] = [];
  await byEnvironment(viewed, async (environment, members) => {
    const { name } = members[0]!.one.view.verifier;
    const answered = members.filter(({ one }) => one.view.answer !== null);
    const interpretations = await environment.interpretations(
      name,
      answered.map(({ one }) => ({ ref: one.task, episode: one.episode, answer: one.view.answer! })),
      asker,
    );
    for (const { at } of members) meanings[at] = { score: null };
    answered.forEach(({ at }, i) => {
      const one = interpretations[i]!;
      meanings[at] =
        one instanceof GradusError ? { score: null, evidence: one.message, fault: one.message } : one;
    });
  });
  return meanings;
}

async function byEnvironment<T extends Viewed>(
  all: readonly T[],
  work: (environment: HostedEnvironment, members: { one: T; at: number }[]) => Promise<void>,
): Promise<void> {
  const groups = new Map<HostedEnvironment, { one: T; at: number }[]>();
  all.forEach((one, at) => {
    const group = groups.get(one.environment) ?? [];
    groups.set(one.environment, group);
    group.push({ one, at });
  });
  await Promise.all([...groups].map(([environment, members]) => work(environment, members)));
}

function fastScore({ outcome }: Episode): TierScore {
  if (outcome?.kind !== 'scored' && outcome?.kind !== 'truncated') return 'abstained';
  return outcome.components.find(({ verifier }) => verifier === LADDER)?.score ?? 'abstained';
}

/** What a reward model has said of what the lowest tier passed; undefined where none was asked. */
const modelVerdictOf = ({ outcome }: Episode): ModelVerdict | undefined =>
  outcome && isRewarded(outcome)
    ? outcome.components.find(({ verifier }) => verifier === LADDER)?.model
    : undefined;

/** What a rung above the lowest has said, as the ladder's policy needs it. */
function scoreOf(view: TierView | null): TierScore {
  if (view === null) return 'nothing to ask';
  const { answer, meaning } = view;
  if (answer === null) return undefined;
  if (meaning?.score != null) return meaning.score;
  // What the environment's own code failed to make of it says nothing of the subject either.
  if (meaning?.fault !== undefined) return 'passing';
  return answer.kind === 'abstained' && isTransientAbstention(answer.type) ? 'passing' : 'abstained';
}

/** A decision on a candidate, as the ledger has it. */
export function decisionEntry(
  { id, step, scores, learned }: LadderCandidate,
  { kind, tier: decided, value, uncertainty, reason }: LadderDecision,
  ladder: WholeLadder,
  digest: string,
): LedgerEntry {
  const tier = basisOf(scores);
  const { rungs } = ladderOf(learned, ladder);
  return {
    kind: 'decision',
    stage: step.stage,
    step: step.step,
    candidate: id,
    verifier: rungs[Math.max(0, decided)]!.verifier,
    decision: kind,
    basis: tier < 0 ? null : { rung: tier, verifier: rungs[tier]!.verifier, score: scores[tier] as number },
    value,
    uncertainty,
    reason,
    digest,
  };
}
