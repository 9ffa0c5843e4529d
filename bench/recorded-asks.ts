import type { TaskRef } from '../core/refs.ts';
import type { Environment } from '../environments/contract/environment.ts';
import type { Ask, AskKinds } from '../environments/host/asks.ts';
import { factsOf } from '../environments/host/facts.ts';
import { HostedEnvironment } from '../environments/host/hosted-environment.ts';
import { serve } from '../environments/host/serve.ts';

/** What an environment was asked in a stretch of work: asks of one turn of the event loop go together. */
export type RecordedAsks = Ask[][];

/** An environment in this process, and what it has been asked since `take` was last called. */
export function recording(environment: Environment): {
  environment: HostedEnvironment;
  take(): RecordedAsks;
} {
  const file = 'this process';
  let turns: RecordedAsks = [];
  let open = false;
  const hosted = new HostedEnvironment(factsOf(environment, file), {
    ask: (ask, { signal, heartbeat = () => undefined }) => {
      if (!open) {
        open = true;
        turns.push([]);
        setImmediate(() => (open = false));
      }
      turns.at(-1)!.push(ask);
      return serve({ environment, file }, ask, { signal, heartbeat });
    },
  });
  return {
    environment: hosted,
    take: () => {
      const taken = turns;
      turns = [];
      return taken;
    },
  };
}

/** Asks again, each turn when the one before it has its answers. Gives the answers, in order. */
export async function replay(
  environment: HostedEnvironment,
  turns: RecordedAsks,
  signal: AbortSignal,
): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const asks of turns)
    answers.push(await Promise.all(asks.map((ask) => askAgain(environment, ask, signal))));
  return answers;
}

function askAgain(environment: HostedEnvironment, ask: Ask, signal: AbortSignal): Promise<unknown> {
  switch (ask.kind) {
    case 'tasks':
      return environment.tasks(ask.items as TaskRef[], { signal });
    case 'calls':
      return Promise.all(
        (ask.items as AskKinds['calls']['item'][]).map(({ call, ...context }) =>
          environment.call(call, { ...context, signal }),
        ),
      );
    case 'verdicts': {
      const items = ask.items as AskKinds['verdicts']['item'][];
      return environment.verdicts(items[0]!.verifiers, items, { signal });
    }
    default:
      throw new Error(`a step of the demo asks for no ${ask.kind}`);
  }
}

/** Episodes that were judged. */
export const episodesIn = (turns: RecordedAsks): number =>
  turns
    .flat()
    .filter(({ kind }) => kind === 'verdicts')
    .reduce((sum, { items }) => sum + items.length, 0);
