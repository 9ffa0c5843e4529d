import { canonicalJson } from '../core/canonical-json.ts';
import type { Episode, RolloutGroup } from '../core/episode.ts';
import { LADDER } from '../core/ladder/requests.ts';
import type { Climbing, StepGroups } from '../core/ladder/requests.ts';
import type { LedgerEntry } from '../core/ladder/ledger.ts';
import type { LadderDecision } from '../core/ladder/policy.ts';
import type { Json } from '../core/json.ts';
import type { BlobRef } from '../core/refs.ts';
import type { TierAnswer } from '../core/tier-contract.ts';
import type { Candidate, Environment, TierVerifier } from '../environments/contract.ts';
import { environmentOf } from './environment-of.ts';
import type { Environments } from './environment-of.ts';
import { candidateOf } from './judge.ts';
import { sha256Hex } from './store/digest.ts';
import type { ObjectStore } from './store/object-store.ts';
import { loadTrajectories } from './store/trajectories.ts';
import { findVerdict } from './verdict-cache.ts';

export interface LadderDependencies {
  store: ObjectStore;
  environments: Environments;
}

/** What one rung above the lowest would judge of an episode, and what it has said. */
export interface RungView {
  verifier: TierVerifier;
  subject: Json;
  digest: string;
  answer: TierAnswer | null;
}

/** An episode on the ladder. */
export interface Climber {
  id: string;
  step: StepGroups;
  group: RolloutGroup;
  ref: BlobRef;
  episode: Episode;
  environment: Environment;
  candidate: Candidate;
  /** By rung; null for the lowest, and where there is nothing to ask. */
  views: (RungView | null)[];
  scores: (number | null | undefined)[];
  digests: (string | null)[];
}

/**
 * The episodes of these steps with everything that is known of them: what the fast tier said when they were judged,
 * and what the cache of verdicts holds now. A subject of null counts as an abstention: the rung is passed over.
 */
export async function loadClimbers(
  { store, environments }: LadderDependencies,
  {
    run,
    verification: { rungs },
    steps,
  }: { run: string; verification: Pick<Climbing['verification'], 'rungs'>; steps: readonly StepGroups[] },
  signal: AbortSignal,
): Promise<Climber[]> {
  const climbers: Climber[] = [];
  for (const step of steps) {
    const groups = await Promise.all(step.groups.map((ref) => loadTrajectories(store, ref, { signal })));
    groups.forEach((group, i) => {
      for (const episode of group.episodes) {
        const { ref: task } = group.tasks[episode.task]!;
        if (episode.status.kind === 'failed') continue;
        const environment = environmentOf(environments, task.environment);
        const candidate = candidateOf(environment, task, episode);
        const views = rungs.map(({ verifier }, rung) =>
          rung === 0 ? null : viewOf(environment, verifier, candidate),
        );
        climbers.push({
          id: `${step.stage}/${step.step}/${group.id}/${episode.task}/${episode.sample}`,
          step,
          group,
          ref: step.groups[i]!,
          episode,
          environment,
          candidate,
          views,
          scores: [],
          digests: views.map((view) => view?.digest ?? null),
        });
      }
    });
  }
  const found = new Map<string, Promise<TierAnswer | null>>();
  for (const { views } of climbers) {
    for (const view of views) {
      if (view === null) continue;
      const { name, version } = view.verifier;
      const key = `${name}/${version}/${view.digest}`;
      if (!found.has(key))
        found.set(key, findVerdict(store, { verifier: name, version, digest: view.digest }, { signal, run }));
      view.answer = await found.get(key)!;
    }
  }
  for (const climber of climbers) {
    climber.scores = climber.views.map((view, rung) => {
      if (rung === 0) return fastScore(climber.episode);
      return view === null ? null : view.answer === null ? undefined : scoreOf(view, climber.candidate).score;
    });
  }
  return climbers;
}

export function viewOf(environment: Environment, name: string, candidate: Candidate): RungView | null {
  const verifier = environment.verifiers.find((other) => other.name === name);
  if (!verifier || verifier.tier === 'fast') return null;
  const subject = verifier.subject(candidate);
  if (subject === null) return null;
  const digest = sha256Hex(new TextEncoder().encode(canonicalJson(subject)));
  return { verifier, subject, digest, answer: null };
}

function fastScore({ outcome }: Episode): number | null {
  if (outcome?.kind !== 'scored' && outcome?.kind !== 'truncated') return null;
  return outcome.components.find(({ verifier }) => verifier === LADDER)?.score ?? null;
}

/** What an answer means for this candidate: a score in [0, 1], or null with the reason. */
export function scoreOf(view: RungView, candidate: Candidate): { score: number | null; evidence?: string } {
  const { answer, verifier } = view;
  if (answer === null) return { score: null };
  if (verifier.interpret) {
    const verdict = verifier.interpret(candidate, answer);
    if (verdict.kind === 'abstain') return { score: null, evidence: verdict.reason };
    const { score, evidence } = verdict;
    if (!(score >= 0 && score <= 1))
      return { score: null, evidence: `said ${score}, which is no score in [0, 1]` };
    return { score, ...(evidence === undefined ? {} : { evidence }) };
  }
  if (answer.kind === 'abstained') return { score: null, evidence: `${answer.type}: ${answer.reason}` };
  if (answer.kind === 'measured') {
    return { score: null, evidence: `${verifier.name} measures, and its environment does not interpret it` };
  }
  return { score: answer.score, ...(answer.evidence === undefined ? {} : { evidence: answer.evidence }) };
}

/** A decision on a climber, as the ledger has it. */
export function decisionEntry(
  { id, step }: Climber,
  { kind, value, uncertainty, reason }: LadderDecision,
  verifier: string,
  digest: string,
): LedgerEntry {
  return {
    kind: 'decision',
    stage: step.stage,
    step: step.step,
    candidate: id,
    verifier,
    decision: kind,
    value,
    uncertainty,
    reason,
    digest,
  };
}
