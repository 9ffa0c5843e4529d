import type { GroupTask } from '../../core/episode/episode.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import type { Speaking } from './policies.ts';

/** Whose tools a task has. */
export const speaking = (
  { environments }: { environments: Environments },
  { ref, tools }: GroupTask,
): Speaking => (tools ? { tools } : environmentOf(environments, ref.environment));

/** The tools of a task, and the environment that has them. */
export function toolsOfTask(
  { environments }: { environments: Environments },
  { ref, tools }: GroupTask,
): { environment: HostedEnvironment; tools: readonly ToolFacts[] } {
  const environment = environmentOf(environments, ref.environment);
  return { environment, tools: tools ?? environment.tools };
}
