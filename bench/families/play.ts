import { actsOf } from '../../core/episode/acts.ts';
import type { EpisodeSession, Turn } from '../../core/episode/episode.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import type { DemonstrationTurn } from '../../environments/contract.ts';

/** The calls that an expert makes in a task. */
export interface Script {
  ref: TaskRef;
  calls: readonly NonNullable<DemonstrationTurn['call']>[];
}

/** Scripts of as many tasks of a level. Throws where the environment has no expert. */
export async function scriptsOf(
  environment: HostedEnvironment,
  level: number,
  count: number,
  signal: AbortSignal,
): Promise<Script[]> {
  const refs = Array.from({ length: Math.min(count, environment.taskCount('test', level)) }, (_, index) => ({
    environment: environment.name,
    split: 'test' as const,
    level,
    index,
  }));
  const shown = await environment.demonstrations(
    refs.map((ref) => ({ ref, index: 0 })),
    { signal },
  );
  return shown.map((one, i) => {
    if (one instanceof Error) throw one;
    return { ref: refs[i]!, calls: one.demonstration.turns.flatMap(({ call }) => call ?? []) };
  });
}

/** An episode that is at one of its calls. */
export class Playing {
  private readonly turns: Pick<Turn, 'action' | 'observation'>[] = [];
  private kept: EpisodeSession | undefined;
  private readonly environment: HostedEnvironment;
  private readonly script: Script;
  private readonly id: string;

  constructor(environment: HostedEnvironment, script: Script, id: string) {
    this.environment = environment;
    this.script = script;
    this.id = id;
  }

  /** Makes the next call; false when there is none. */
  async step(signal: AbortSignal): Promise<boolean> {
    const call = this.script.calls[this.turns.length];
    if (call === undefined) return false;
    const idempotencyKey = `${this.id}/${this.turns.length}`;
    const context = { idempotencyKey, attempt: 1, signal, session: this.asked() };
    const { observation, session } = await this.environment.call(call, context);
    this.kept = session ?? this.kept;
    this.turns.push({ action: { kind: 'call', call }, observation });
    return true;
  }

  async close(signal: AbortSignal): Promise<void> {
    await this.environment.close([this.asked()], { signal });
  }

  /** What is kept with the episode so that it can go on, bytes of JSON. */
  get keptBytes(): number {
    return this.kept === undefined ? 0 : JSON.stringify(this.kept).length;
  }

  private asked() {
    return {
      ref: this.script.ref,
      id: this.id,
      acts: actsOf(this.turns, this.environment.tools),
      kept: this.kept,
    };
  }
}
