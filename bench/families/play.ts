import type { TaskRef } from '../../core/refs.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { PlayedSession } from '../../environments/host/played-session.ts';
import type { DemonstrationTurn } from '../../environments/contract/environment.ts';

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
  private readonly session: PlayedSession;
  private readonly calls: Script['calls'];

  constructor(environment: HostedEnvironment, { ref, calls }: Script, id: string) {
    this.session = new PlayedSession(environment, ref, id);
    this.calls = calls;
  }

  /** Makes the next call; false when there is none. */
  async step(signal: AbortSignal): Promise<boolean> {
    const call = this.calls[this.session.turns.length];
    if (call === undefined) return false;
    await this.session.call(call, { signal });
    return true;
  }

  async close(signal: AbortSignal): Promise<void> {
    await this.session.close({ signal });
  }

  /** What is kept with the episode so that it can go on, bytes of JSON. */
  get keptBytes(): number {
    const { kept } = this.session;
    return kept === undefined ? 0 : JSON.stringify(kept).length;
  }
}
