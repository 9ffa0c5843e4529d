import type { Act } from '../../core/episode/acts.ts';
import type { Episode, EpisodeSession, Observation, ToolCall } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import type { Boundary } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { VerdictOfVerifier } from '../../core/episode/reward.ts';
import type { MadeTaskRef } from '../../core/refs.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type { Demonstration, Proposed, SubjectBlock, TierFinding, Varied } from '../contract/environment.ts';
import type { SessionEnd, EpisodeEnd } from '../contract/session.ts';
import type { ToolFacts } from './facts.ts';
import type { SentImage } from './images.ts';

// What a host is asked and what it answers, as JSON. Every ask is about one environment and has items that are
// answered one by one, so that a host that dies over one of them can be asked about the others again.

/** An episode as verifiers see it; its task is made where it is judged. */
export interface HostCandidate {
  ref: MadeTaskRef;
  episode: Pick<Episode, 'turns' | 'status' | 'session' | 'calls'>;
}

/** An episode's session, wherever it lives: all that any process needs to go on with it. */
export interface SessionAsk {
  ref: MadeTaskRef;
  /** The episode's. */
  id: string;
  /** What it has taken so far. */
  acts: readonly Act[];
  kept?: EpisodeSession | undefined;
}

export interface AskedCall {
  call: ToolCall;
  /** The tool, where it is of the task alone and not of its environment. */
  ownTool?: Pick<ToolFacts, 'placement' | 'effect' | 'limits'> | undefined;
  session: SessionAsk;
}

/** What a call brought, and what is now to be kept of the session that had it. */
export interface Called {
  observation: Observation;
  /** What the observation's `images` name, in their order. */
  images?: readonly SentImage[];
  session?: EpisodeSession;
}

export interface AskKinds {
  /** The user's messages of tasks, and their tools where they are not the environment's. */
  tasks: { item: MadeTaskRef; answer: { prompt: string; tools?: ToolFacts[] } };
  demonstrations: {
    item: { ref: MadeTaskRef; index: number };
    answer: { prompt: string; demonstration: Demonstration; tools?: ToolFacts[] };
  };
  /** Why a call cannot be tried; null when it can. */
  refusals: { item: AskedCall; answer: Observation | null };
  calls: { item: AskedCall & { idempotencyKey: string; attempt: number }; answer: Called };
  /** A session's last word. */
  endings: { item: { session: SessionAsk; end: EpisodeEnd }; answer: SessionEnd };
  /** Lets go of sessions whose episodes have failed, or are called off. */
  closings: { item: SessionAsk; answer: null };
  /** What fast verifiers say, in the order of their names. */
  verdicts: { item: HostCandidate & { verifiers: readonly string[] }; answer: HostedVerdict[] };
  /** What verifiers of tiers would be asked about a candidate; null where it is not worth it. */
  subjects: { item: HostCandidate & { verifier: string }; answer: Json };
  /** What a tier's answer means for a candidate. */
  interpretations: {
    item: HostCandidate & { verifier: string; answer: TierAnswer };
    answer: Meaning;
  };
  /** What to tell whoever tries again. */
  hints: { item: HostCandidate & { evidence: readonly string[] }; answer: string };
  /** Another task that an episode has solved, with what fast verifiers say of that; null where there is none. */
  relabellings: {
    item: HostCandidate & { verifiers: readonly string[] };
    answer: { prompt: string; said: HostedVerdict[] } | null;
  };
  /** What a proposal comes to. */
  proposals: { item: HostCandidate; answer: Proposed };
  /** Another task made of one. */
  variations: { item: { ref: MadeTaskRef; index: number }; answer: Varied };
  findings: { item: { verifier: string; subject: Json }; answer: TierFinding };
  /** How subjects are shown to people. */
  presentations: { item: Json; answer: SubjectBlock[] };
}

/** A verifier's verdict. `fault` is there when it is none for a reason that is the verifier's own mistake. */
export type HostedVerdict = Omit<VerdictOfVerifier, 'passed'> & { fault?: string };

/** What a tier's answer means: a score in [0, 1], or null with the reason; `fault` where the environment could not say. */
export type Meaning = Omit<HostedVerdict, 'verifier' | 'version'>;

export type AskKind = keyof AskKinds;

export interface HostRequest<Kind extends AskKind = AskKind> {
  kind: Kind;
  environment: string;
  items: readonly AskKinds[Kind]['item'][];
}

export type HostAnswer<Kind extends AskKind = AskKind> =
  { ok: AskKinds[Kind]['answer'] } | { error: ErrorOfHost };

/** The type of the error of an item over which hosts died. */
export const DIED = 'host-died';

/** Whether hosts died over what failed: who saw it has told it already. */
export const isDeath = (error: unknown): boolean => error instanceof GradusError && error.type === DIED;

/** A GradusError, as JSON. */
export interface ErrorOfHost {
  boundary: Boundary;
  type: string;
  message: string;
  retryable: boolean;
}

export const toError = ({ boundary, type, message, retryable }: ErrorOfHost): GradusError =>
  new GradusError(boundary, type, message, { retryable });

export const fromError = ({ boundary, type, message, retryable }: GradusError): ErrorOfHost => ({
  boundary,
  type,
  message,
  retryable,
});

type Item = AskKinds[AskKind]['item'];

/** Whose code an item runs, in words: `tool search`, `verifier style`, `task()`. */
export function functionsOf(kind: AskKind, item: Item): string[] {
  switch (kind) {
    case 'tasks':
      return ['task()'];
    case 'demonstrations':
      return ['demonstrate()'];
    case 'refusals':
      return [`tool ${(item as AskKinds['refusals']['item']).call.name}`];
    case 'calls':
      return [`tool ${(item as AskKinds['calls']['item']).call.name}`];
    case 'endings':
      return ["a session's end()"];
    case 'closings':
      return ["a session's close()"];
    case 'hints':
      return ['hint()'];
    case 'relabellings':
      return ['relabel()'];
    case 'proposals':
      return ['proposals.check()'];
    case 'variations':
      return ['vary()'];
    case 'presentations':
      return ['present()'];
    case 'verdicts':
      return (item as AskKinds['verdicts']['item']).verifiers.map((name) => `verifier ${name}`);
    default:
      return [`verifier ${(item as { verifier: string }).verifier}`];
  }
}

const OF_ENVIRONMENTS: readonly AskKind[] = [
  'tasks',
  'demonstrations',
  'hints',
  'relabellings',
  'proposals',
  'variations',
  'endings',
  'closings',
  'presentations',
];

/** The boundary at which what goes wrong in an ask has crossed into Gradus. */
export function boundaryOf(kind: AskKind): Boundary {
  if (OF_ENVIRONMENTS.includes(kind)) return 'environment';
  return kind === 'calls' || kind === 'refusals' ? 'tool' : 'verifier';
}
