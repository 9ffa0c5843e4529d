import { GradusError } from '../../core/errors.ts';
import type { Observation, ToolCall } from '../../core/episode/episode.ts';
import type { Incident } from '../../core/episode/incidents.ts';
import type { Json } from '../../core/json/json.ts';
import type { MadeTaskRef, Split } from '../../core/refs.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import { DEFAULT_TOOL_LIMITS } from '../contract/environment.ts';
import type { Environment, SubjectBlock, TierFinding, ToolContext } from '../contract/environment.ts';
import type { SessionEnd, EpisodeEnd, Resume } from '../contract/session.ts';
import { DIED, functionsOf, toError } from './asks.ts';
import type {
  HostAnswer,
  HostRequest,
  AskedCall,
  AskKind,
  AskKinds,
  Called,
  HostCandidate,
  HostedVerdict,
  SessionAsk,
} from './asks.ts';
import { environmentFactsOf } from './facts.ts';
import type { EnvironmentFacts, TaskCount, ToolFacts, VerifierFacts } from './facts.ts';
import { inAttempts } from './in-attempts.ts';
import { readPresentation } from './read-presentation.ts';
import { serve } from './serve.ts';

/** Pause before a session is asked for its last word again, milliseconds, doubled each time. */
const END_PAUSE_MS = 50;

/** Who asks: how it is called off, and who is told of what users' code did wrong on the way. */
export interface HostCaller {
  signal: AbortSignal;
  incident?: ((incident: Incident) => void) | undefined;
}

export interface HostRequestOptions extends HostCaller {
  heartbeat?: ToolContext['heartbeat'];
}

/** One attempt at a call. */
export interface CallContext extends HostRequestOptions {
  idempotencyKey: string;
  attempt: number;
  session: SessionAsk;
}

/** Tools as whoever asks knows them: those of a task, where it has its own. */
export type KnownTools = readonly Pick<ToolFacts, 'name' | 'placement' | 'effect' | 'limits'>[];

/** Brings asks to where users' code runs. An answer for each item, in order; rejects only with the signal's reason. */
export interface Transport {
  ask(ask: HostRequest, options: HostRequestOptions): Promise<HostAnswer[]>;
}

/**
 * An environment whose code runs somewhere else: what is known of it, and what it can be asked. Whatever its code does
 * (throws, hangs, eats memory, ends its process) comes back as a GradusError of the boundary that it belongs to.
 */
export class HostedEnvironment {
  readonly name: string;
  readonly file: string;
  readonly levels: readonly number[];
  readonly tools: readonly ToolFacts[];
  readonly verifiers: readonly VerifierFacts[];
  readonly relabels: boolean;
  readonly proposals: EnvironmentFacts['proposals'];
  readonly varies: boolean;
  readonly demonstrates: boolean;
  readonly presents: boolean;
  readonly resume: Resume | null;
  readonly endSeconds: number | null;
  readonly version: string | null;
  private readonly taskCounts: Record<Split, Record<number, TaskCount>>;
  private readonly transport: Transport;

  constructor(facts: EnvironmentFacts, transport: Transport) {
    this.name = facts.name;
    this.file = facts.file;
    this.levels = facts.levels;
    this.tools = facts.tools;
    this.verifiers = facts.verifiers;
    this.relabels = facts.relabels;
    this.proposals = facts.proposals;
    this.varies = facts.varies;
    this.demonstrates = facts.demonstrates;
    this.presents = facts.presents;
    this.resume = facts.resume;
    this.endSeconds = facts.endSeconds;
    this.version = facts.version;
    this.taskCounts = facts.taskCounts;
    this.transport = transport;
  }

  /** Infinity where it is practically endless. Throws GradusError('environment', 'task-count') where it cannot be said. */
  taskCount(split: Split, level: number): number {
    const count = this.taskCounts[split][level] ?? { broken: 'has no such level' };
    if (count === 'endless') return Infinity;
    if (typeof count === 'number') return count;
    throw new GradusError(
      'environment',
      'task-count',
      `taskCount(${split}, ${level}) of ${this.name} (${this.file}) ${count.broken}: fix it, and start the workers again`,
    );
  }

  /** The user's messages, with the tools of tasks that have their own, or why there is none. */
  tasks(
    refs: readonly MadeTaskRef[],
    asker: HostCaller,
  ): Promise<(AskKinds['tasks']['answer'] | GradusError)[]> {
    return this.all('tasks', refs, asker);
  }

  demonstrations(
    items: readonly { ref: MadeTaskRef; index: number }[],
    asker: HostCaller,
  ): Promise<(AskKinds['demonstrations']['answer'] | GradusError)[]> {
    return this.all('demonstrations', items, asker);
  }

  /** Why a call cannot even be tried, told to the policy; null when it can. Throws GradusError('tool', …). */
  async refusalOf(
    call: ToolCall,
    asker: HostCaller & { session: SessionAsk },
    tools: KnownTools = this.tools,
  ): Promise<Observation | null> {
    const unknown = unknownTool(call, tools);
    return unknown ?? (await this.one('refusals', this.asked(call, tools, asker.session), asker));
  }

  /** One attempt of a call, checked first. Throws GradusError('tool' | 'environment', …), and the reason of an abort. */
  async call(call: ToolCall, context: CallContext, tools: KnownTools = this.tools): Promise<Called> {
    const unknown = unknownTool(call, tools);
    if (unknown) return { observation: unknown };
    const { idempotencyKey, attempt, session } = context;
    return this.one('calls', { ...this.asked(call, tools, session), idempotencyKey, attempt }, context);
  }

  /**
   * The last word of an episode's session, asked for again where that may help; then it is closed, and that it could not be
   * is an incident. Throws GradusError('environment', …).
   */
  async end(session: SessionAsk, end: EpisodeEnd, asker: HostCaller): Promise<SessionEnd> {
    try {
      return await inAttempts(() => this.one('endings', { session, end }, asker), {
        attempts: DEFAULT_TOOL_LIMITS.maxAttempts,
        firstPauseMs: END_PAUSE_MS,
        signal: asker.signal,
      });
    } finally {
      await this.close([session], asker);
    }
  }

  /** Lets go of sessions, and tells of each that could not be closed. A fold holds nothing. */
  async close(sessions: readonly SessionAsk[], asker: HostCaller): Promise<void> {
    if (this.resume === null || this.resume === 'fold') return;
    await this.all('closings', sessions, asker);
  }

  private asked(call: ToolCall, tools: KnownTools, session: SessionAsk): AskedCall {
    if (tools === this.tools) return { call, session };
    const { placement, effect, limits } = tools.find(({ name }) => name === call.name)!;
    return { call, session, ownTool: { placement, effect, limits } };
  }

  /** What the named fast verifiers say of candidates, in order. */
  verdicts(
    verifiers: readonly string[],
    candidates: readonly HostCandidate[],
    asker: HostCaller,
  ): Promise<(HostedVerdict[] | GradusError)[]> {
    const items = candidates.map(({ ref, episode }) => ({ ref, episode: seen(episode), verifiers }));
    return this.all('verdicts', items, asker);
  }

  /** What to tell whoever tries tasks again that these candidates failed; `evidence` is what verifiers said of each. */
  hints(
    failed: readonly (HostCandidate & { evidence: readonly string[] })[],
    asker: HostCaller,
  ): Promise<(string | GradusError)[]> {
    const items = failed.map(({ ref, episode, evidence }) => ({ ref, episode: seen(episode), evidence }));
    return this.all('hints', items, asker);
  }

  /** Other tasks that candidates have solved, with what the named fast verifiers say; null where there is none. */
  relabellings(
    verifiers: readonly string[],
    failed: readonly HostCandidate[],
    asker: HostCaller,
  ): Promise<(AskKinds['relabellings']['answer'] | GradusError)[]> {
    const items = failed.map(({ ref, episode }) => ({ ref, episode: seen(episode), verifiers }));
    return this.all('relabellings', items, asker);
  }

  /** What proposals come to. */
  proposed(
    candidates: readonly HostCandidate[],
    asker: HostCaller,
  ): Promise<(AskKinds['proposals']['answer'] | GradusError)[]> {
    const items = candidates.map(({ ref, episode }) => ({ ref, episode: seen(episode) }));
    return this.all('proposals', items, asker);
  }

  /** Other tasks made of these. */
  variations(
    items: readonly { ref: MadeTaskRef; index: number }[],
    asker: HostCaller,
  ): Promise<(AskKinds['variations']['answer'] | GradusError)[]> {
    return this.all('variations', items, asker);
  }

  /** What a verifier of a tier would be asked about candidates; null where it is not worth asking. */
  subjects(
    verifier: string,
    candidates: readonly HostCandidate[],
    asker: HostCaller,
  ): Promise<(Json | GradusError)[]> {
    const items = candidates.map(({ ref, episode }) => ({ ref, episode: seen(episode), verifier }));
    return this.all('subjects', items, asker);
  }

  interpretations(
    verifier: string,
    answered: readonly (HostCandidate & { answer: TierAnswer })[],
    asker: HostCaller,
  ): Promise<(AskKinds['interpretations']['answer'] | GradusError)[]> {
    const items = answered.map(({ ref, episode, answer }) => ({
      ref,
      episode: seen(episode),
      answer,
      verifier,
    }));
    return this.all('interpretations', items, asker);
  }

  /** What a verifier that is a function says of a subject. Throws GradusError('verifier', …). */
  find(verifier: string, subject: Json, options: HostRequestOptions): Promise<TierFinding> {
    return this.one('findings', { verifier, subject }, options);
  }

  /**
   * How a subject is shown to people. What comes is looked at here, too: who said it may have changed what looks at it
   * there. Throws GradusError('environment', …).
   */
  async present(subject: Json, asker: HostCaller): Promise<SubjectBlock[]> {
    const blocks = readPresentation(await this.one('presentations', subject, asker));
    if ('value' in blocks) return blocks.value;
    throw new GradusError(
      'environment',
      'present',
      `present() of ${this.name} (${this.file}) ${blocks.fault}`,
    );
  }

  private async all<Kind extends AskKind>(
    kind: Kind,
    items: readonly AskKinds[Kind]['item'][],
    options: HostRequestOptions,
  ): Promise<(AskKinds[Kind]['answer'] | GradusError)[]> {
    if (items.length === 0) return [];
    const answers = (await this.transport.ask(
      { kind, environment: this.name, items },
      options,
    )) as HostAnswer<Kind>[];
    answers.forEach((answer, i) => {
      for (const { name, fault } of faultsOf(kind, items[i]!, answer))
        options.incident?.(this.threw(name, fault));
    });
    return answers.map((answer) => ('ok' in answer ? answer.ok : toError(answer.error)));
  }

  /** The incident of a function that threw, or gave what it must not; its kind says the first, the message need not. */
  threw(name: string, why: string): Incident {
    const message = why.replace(/^threw: /, '');
    return { environment: this.name, file: this.file, function: name, kind: 'threw', count: 1, message };
  }

  private async one<Kind extends AskKind>(
    kind: Kind,
    item: AskKinds[Kind]['item'],
    options: HostRequestOptions,
  ): Promise<AskKinds[Kind]['answer']> {
    const [answer] = await this.all(kind, [item], options);
    if (answer instanceof GradusError) throw answer;
    return answer!;
  }
}

/**
 * What functions did wrong. A death is told by who saw it; a call may be tried again by who made it, and what came of
 * it is told then.
 */
function faultsOf<Kind extends AskKind>(
  kind: Kind,
  item: AskKinds[Kind]['item'],
  answer: HostAnswer<Kind>,
): { name: string; fault: string }[] {
  const name = functionsOf(kind, item).join(', ');
  if ('error' in answer) {
    const { type, boundary, message } = answer.error;
    if (kind === 'calls' || type === DIED) return [];
    // A task that cannot be made again where it is judged is no verifier's mistake.
    return [{ name: boundary === 'environment' && type === 'task' ? 'task()' : name, fault: message }];
  }
  if (kind === 'verdicts') {
    return (answer.ok as HostedVerdict[]).flatMap(({ verifier, fault }) =>
      fault === undefined ? [] : [{ name: `verifier ${verifier}`, fault }],
    );
  }
  const fault = kind === 'interpretations' ? (answer.ok as { fault?: string }).fault : undefined;
  return fault === undefined ? [] : [{ name, fault }];
}

function unknownTool(call: ToolCall, tools: KnownTools): Observation | null {
  if (tools.some(({ name }) => name === call.name)) return null;
  const names = tools.map(({ name }) => name).join(', ');
  return { text: `error: no tool ${call.name.slice(0, 40)}; tools: ${names}`, error: 'unknown-tool' };
}

/** Without tokens and log-probs, which no verifier sees. */
const seen = ({ turns, status, session, calls }: HostCandidate['episode']): HostCandidate['episode'] => ({
  turns,
  status,
  ...(session && { session }),
  ...(calls && { calls }),
});

/**
 * Environments whose code runs in this process, without protection: for programs that run nobody else's work, such as
 * a plain loop or a person's own command.
 */
export function inThisProcess(environments: Iterable<Environment>): Map<string, HostedEnvironment> {
  return new Map([...environments].map((environment) => [environment.name, hostedHere(environment)]));
}

/** `inThisProcess` of one. */
export function hostedHere(environment: Environment): HostedEnvironment {
  const file = 'this process';
  return new HostedEnvironment(environmentFactsOf(environment, file), {
    ask: async (ask, { signal, heartbeat = () => undefined }) => {
      const answers = await serve({ environment, file }, ask, { signal, heartbeat });
      signal.throwIfAborted();
      return answers;
    },
  });
}
