import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { extensionOf } from '../../../core/extensions/registry.ts';
import type { RandomKey } from '../../../core/random.ts';
import type { AgentSpec } from '../../../core/schema/agent.ts';
import type { SamplingSpec } from '../../../core/schema/sampling.ts';
import type { Dialect, ToolDescription } from '../../../engine/dialect/contract.ts';
import type { TurnPolicy } from '../../../engine/policy.ts';
import type { AgentEpisode } from '../../../gateway/agent-episode.ts';
import type { AgentRun } from '../../../gateway/agent-run.ts';
import { askAgent } from '../../../gateway/ask-agent.ts';
import { runAgent } from '../../../gateway/run-agent.ts';
import { runLoop } from '../../../gateway/run-loop.ts';
import type { Gateway } from '../../../gateway/server.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import type { PolicyLease } from '../policies.ts';
import { pages } from '../trajectory-parts.ts';
import type { FollowedEpisode } from '../trajectory-parts.ts';
import { offeredTools, withCalls } from './environment-tools.ts';
import type { AgentTools } from './environment-tools.ts';
import { episodeOfTurns } from './episode-of-turns.ts';

const LONGEST_PAUSE_MS = 60_000;

export interface AgentContext {
  agent: AgentSpec;
  gateway: Gateway;
  lease: PolicyLease;
  /** What samples a turn, by its id, in the place of the lease's policy; absent: that one samples all of them. */
  turnPolicy?: ((turn: string) => Promise<TurnPolicy>) | undefined;
  store: ObjectStore;
  /** Where the turns are put while the episode is on its way. */
  folder: string;
  /** Where it is put when it has ended. */
  key: string;
  sampling: SamplingSpec;
  draws: RandomKey;
  /** Those of the environment that the agent may call; absent: none. */
  tools?: AgentTools | undefined;
  signal: AbortSignal;
}

/**
 * Has an agent make an episode, or takes the one that an earlier attempt has finished. Turns that an attempt has sampled
 * are found again by the next one, and are not sampled again. `task` of the result has the prompt that the agent wrote.
 * Throws what the policy or the store throws: that is no fault of the agent's.
 */
export async function makeEpisode(
  context: AgentContext,
  { task, episode }: FollowedEpisode,
): Promise<FollowedEpisode> {
  const { store, key, signal, agent, lease } = context;
  const before = await store.find(key, pages, { signal });
  if (before) return before[0]!;
  const dialectFor = dialects(lease);
  for (let attempt = 1; ; attempt++) {
    const { opened, run } = await runOnce(context, dialectFor, task.prompt);
    if (run.killed && !opened.tools?.broken && attempt < agent.maxAttempts) {
      // Its server, or what it ran out of, may be back by then.
      await delay(Math.min(1000 * 2 ** (attempt - 1), LONGEST_PAUSE_MS), undefined, { signal });
      continue;
    }
    const made =
      run.row === null
        ? { task, episode: { ...episode, status: run.status } }
        : withTurns(
            { task, episode },
            run,
            episodeOfTurns(opened.branches(), dialectFor, context.sampling.maxParallelCalls),
          );
    const whole =
      context.tools && opened.tools ? await withCalls(context.tools, opened.tools, made, signal) : made;
    const kept = await store.putIfAbsent(key, pages, [whole], { signal });
    return kept.value[0]!;
  }
}

const withTurns = (
  { task, episode }: FollowedEpisode,
  { status }: AgentRun,
  { promptTokens, ...said }: ReturnType<typeof episodeOfTurns>,
): FollowedEpisode => ({ task: { ...task, promptTokens }, episode: { ...episode, ...said, status } });

/** One start of the agent, from its beginning. */
async function runOnce(
  { agent, gateway, lease, turnPolicy, store, folder, sampling, draws, tools, signal }: AgentContext,
  dialectFor: (tools: readonly ToolDescription[]) => Dialect,
  task: string,
): Promise<{ opened: AgentEpisode; run: AgentRun }> {
  const failing = new AbortController();
  const opened = await gateway.open({
    // Nothing follows from it, and nobody can guess it.
    id: randomUUID(),
    model: agent.model,
    policy: lease.policy,
    turnPolicy,
    tokenizer: lease.tokenizer,
    dialectFor,
    maxPositions: lease.config.maxPositions,
    sampling,
    key: draws,
    store,
    folder,
    startsOver: true,
    branches: agent.branches,
    tools: tools && offeredTools(tools),
    onFailure: (error) => failing.abort(error),
  });
  const asked = {
    task,
    timeoutSeconds: agent.timeoutSeconds,
    signal: AbortSignal.any([signal, failing.signal]),
  };
  if (agent.own) {
    const loop = extensionOf('agent-loop', agent.own.name);
    return { opened, run: await runLoop(gateway, opened, { ...asked, loop, options: agent.own.options }) };
  }
  const run =
    agent.url === undefined
      ? await runAgent(gateway, opened, {
          ...asked,
          argv: agent.command as [string, ...string[]],
          variables: { ...inherited(agent.inheritEnv), ...agent.env },
          cwd: process.cwd(),
          sandbox: agent.sandbox,
        })
      : await askAgent(gateway, opened, { ...asked, url: agent.url });
  return { opened, run };
}

const inherited = (names: readonly string[] = []): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );

/** Dialects by the tools that an agent brings: a checkpoint's template is read once for each. */
function dialects(lease: PolicyLease): (tools: readonly ToolDescription[]) => Dialect {
  const known = new Map<string, Dialect>();
  return (tools) => {
    const name = JSON.stringify(tools);
    const dialect = known.get(name) ?? lease.dialectFor({ tools: tools.map((described) => ({ described })) });
    known.set(name, dialect);
    return dialect;
  };
}
