import { actsOf } from '../../core/episode/acts.ts';
import type { EpisodeSession, Observation, ToolCall } from '../../core/episode/episode.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import type { EndSaid } from '../../environments/session.ts';

const { signal } = new AbortController();

/** An episode's session as a rollout uses it: calls go one by one, each with those before it. */
export class PlayedSession {
  readonly observations: Observation[] = [];
  private readonly environment: HostedEnvironment;
  private readonly ref: TaskRef;
  private readonly id: string;
  private readonly calls: ToolCall[] = [];
  private kept: EpisodeSession | undefined;

  constructor(environment: HostedEnvironment, ref: TaskRef, id: string) {
    this.environment = environment;
    this.ref = ref;
    this.id = id;
  }

  async call(call: ToolCall): Promise<Observation> {
    const { observation, session } = await this.environment.call(call, {
      signal,
      idempotencyKey: `${this.id}/${this.calls.length}`,
      attempt: 1,
      session: this.ask(),
    });
    this.calls.push(call);
    this.observations.push(observation);
    this.kept = session ?? this.kept;
    return observation;
  }

  end(): Promise<EndSaid> {
    const by = this.observations.at(-1)?.done ? 'environment' : 'turns';
    return this.environment.end(this.ask(), { answer: null, by }, { signal });
  }

  private ask() {
    const turns = this.calls.map((call, i) => ({
      action: { kind: 'call' as const, call },
      observation: this.observations[i]!,
    }));
    return { ref: this.ref, id: this.id, acts: actsOf(turns, this.environment.tools), kept: this.kept };
  }
}
