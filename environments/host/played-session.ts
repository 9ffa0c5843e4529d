import { actsOf, callKey } from '../../core/episode/acts.ts';
import { GradusError } from '../../core/errors.ts';
import type { EpisodeSession, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { SessionEnd, EpisodeEnd } from '../contract/session.ts';
import type { HostRequestOptions, HostCaller, HostedEnvironment } from './hosted-environment.ts';
import type { SessionAsk } from './asks.ts';
import type { ToolFacts } from './facts.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

/** How long a session may take to close when whoever played it was cancelled. */
const CLOSE_MS = 10_000;

/**
 * A session whose calls are made one after the other, outside a rollout: each goes with the calls before it and with what
 * the last one left behind, so that it may come back in another process at any of them.
 */
export class PlayedSession {
  /** What was done so far, and what came of it. */
  readonly turns: Pick<Turn, 'action' | 'observation' | 'results'>[] = [];
  private environment: HostedEnvironment;
  private readonly ref: TaskRef;
  private readonly id: string;
  private readonly tools: readonly ToolFacts[];
  private left: EpisodeSession | undefined;
  /** A tool of the session that must be called once only, of which a call was noted that never reached it. */
  private notCalled: string | undefined;

  /** `tools` are those of the task, where it has its own. */
  constructor(environment: HostedEnvironment, ref: TaskRef, id: string, tools = environment.tools) {
    this.environment = environment;
    this.ref = ref;
    this.id = id;
    this.tools = tools;
  }

  /** What is kept for it between two calls. */
  get kept(): EpisodeSession | undefined {
    return this.left;
  }

  /** As it is asked about. */
  get asked(): SessionAsk {
    return { ref: this.ref, id: this.id, acts: actsOf(this.turns, this.tools), kept: this.left };
  }

  /**
   * Throws what HostedEnvironment.call throws; then the same call can be made again. Throws GradusError('environment',
   * 'demonstration') where the session could come back only by a call of a tool that must be called once only.
   */
  async call(call: ToolCall, options: HostRequestOptions & { attempt?: number }): Promise<Observation> {
    this.assertNothingMissing(call);
    const open = this.open;
    const idempotencyKey = open
      ? callKey(this.id, this.turns.length, 1 + open.length)
      : callKey(this.id, this.turns.length + 1);
    const context = { attempt: 1, ...options, idempotencyKey };
    const called = await this.environment.call(call, { ...context, session: this.asked }, this.tools);
    this.left = called.session ?? this.left;
    this.took({ kind: 'call', call }, called.observation);
    return called.observation;
  }

  /** The next calls are those of one turn. */
  begin(calls: readonly ToolCall[]): void {
    this.turns.push({ action: { kind: 'calls', calls: [...calls] }, results: [] });
  }

  /** Results of a turn that has calls left to make. */
  private get open(): Observation[] | undefined {
    const { action, results } = this.turns.at(-1) ?? {};
    return action?.kind === 'calls' && results!.length < action.calls.length ? results : undefined;
  }

  private took(action: Turn['action'], observation?: Observation): void {
    const open = this.open;
    if (open && observation) open.push(observation);
    else this.turns.push({ action, ...(observation && { observation }) });
  }

  /** Why a call cannot even be tried; null when it can. */
  refusalOf(call: ToolCall, asker: HostCaller): Promise<Observation | null> {
    return this.environment.refusalOf(call, { ...asker, session: this.asked }, this.tools);
  }

  /** A turn, or a call of the turn that was begun, that did not go through here. */
  note(action: Turn['action'], observation?: Observation): void {
    this.took(action, observation);
    if (action.kind !== 'call' || observation?.error !== undefined) return;
    const tool = this.tools.find(({ name }) => name === action.call.name);
    if (tool?.ofSession && tool.effect === 'once') this.notCalled = tool.name;
  }

  private assertNothingMissing({ name }: ToolCall): void {
    if (this.notCalled === undefined || !this.tools.some((tool) => tool.name === name && tool.ofSession))
      return;
    throw new GradusError(
      'environment',
      'demonstration',
      `${this.environment.name} calls ${name} after ${this.notCalled}, which must be called once only and was not called: give the turns after it their observations, too`,
    );
  }

  /** Its next call is made in a process that has nothing of it. */
  moveTo(environment: HostedEnvironment): void {
    this.environment = environment;
  }

  end(end: EpisodeEnd, asker: HostCaller): Promise<SessionEnd> {
    return this.environment.end(this.asked, end, asker);
  }

  /** Nobody comes back to it: another attempt begins anew. So it is closed for whoever was cancelled, too. */
  close(asker: HostCaller): Promise<void> {
    const signal = asker.signal.aborted ? timeoutSignal(CLOSE_MS) : asker.signal;
    return this.environment.close([this.asked], { ...asker, signal });
  }
}
