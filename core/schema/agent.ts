import { z } from 'zod';
import { refuseExtension } from '../extensions/registry.ts';
import { count, givenName, positive } from '../fields.ts';
import type { Refuse, SpecEnvironments } from './check.ts';
import type { WrittenTasks } from './tasks.ts';

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable');
const word = z.string().max(10_000, 'has at most 10000 characters');
const place = z.string().min(1).max(4096, 'has at most 4096 characters');

const sandbox = z
  .strictObject({
    folder: place.describe(
      "The agent's own folder, as a path from the folder of the rollout worker. The command starts in it and can read it.",
    ),
    read: z
      .array(place)
      .max(64, 'has at most 64 paths')
      .default([])
      .describe(
        'What it can read besides /usr: an interpreter, its packages. They are where they are outside.',
      ),
    memoryMiB: count(2 ** 20, 'no machine has more', 16)
      .default(1024)
      .describe('Memory of all its processes together.'),
    processes: count(4096, 'a machine has other work to do')
      .default(128)
      .describe('Processes and threads at one time.'),
    cpuSeconds: positive(1e7, 'leave it out, and timeoutSeconds is the limit')
      .optional()
      .describe('Processor time of all its processes together. Absent: timeoutSeconds.'),
    writableMiB: count(2 ** 20, 'it is memory, too')
      .default(256)
      .describe('What it may write, in /work, /tmp and /dev/shm. Nothing of it is kept but its answer.'),
  })
  .optional()
  .describe(
    'The command runs in the sandbox: of files it sees its folder and what it may read, and of the network the gateway alone. Absent: it runs with the rights of the rollout worker.',
  );

export type AgentSandbox = NonNullable<z.output<typeof sandbox>>;

export const agentSchema = z
  .strictObject({
    command: z
      .array(word)
      .nonempty()
      .max(256, 'has at most 256 words')
      .optional()
      .describe(
        'Program and arguments, started for each episode in the folder of the rollout worker; no shell reads them.',
      ),
    sandbox,
    url: z
      .url({ protocol: /^https?$/, error: 'must be an address, such as http://127.0.0.1:4000/run' })
      .optional()
      .describe(
        'In place of a command: where each task is posted as JSON, to a server on the machine of the rollout worker.',
      ),
    own: z
      .strictObject({
        name: givenName.describe('As its module calls it.'),
        options: z.record(z.string(), z.json()).default({}).describe('What the loop itself reads.'),
      })
      .optional()
      .describe(
        'In place of a command: a loop that a module of the project brings, in the rollout worker (docs/extend.md).',
      ),
    env: z
      .record(variable, word)
      .optional()
      .describe('Environment variables of the command. They are stored with the spec: no place for secrets.'),
    inheritEnv: z
      .array(variable)
      .max(100, 'has at most 100 names')
      .optional()
      .describe('Variables of the rollout worker that the command is given, besides PATH and HOME.'),
    model: z
      .string()
      .min(1)
      .max(200, 'has at most 200 characters')
      .default('policy')
      .describe('The name by which the agent asks for the policy.'),
    timeoutSeconds: positive(86_400, 'an episode is one activity with others')
      .default(600)
      .describe('An agent that has not ended by then is killed, and its episode has failed.'),
    maxAttempts: count(20, 'what kills it so often will kill it again')
      .default(3)
      .describe(
        'Starts of an agent that a signal killed, or whose server was not there; then its episode has failed. Between them are pauses of 1 s, 2 s, 4 s and so on, up to a minute.',
      ),
    environmentTools: z
      .strictObject({
        maxCalls: count(10_000, 'an episode is one activity with others')
          .default(100)
          .describe('Calls of them that an episode may have; further ones are refused.'),
      })
      .optional()
      .describe(
        "The agent may call the tools of the task's environment: by MCP at the address in GRADUS_TOOLS_URL, or by a POST of arguments to NAME below it. Absent: they stay unused.",
      ),
    branches: z
      .enum(['train', 'fail'])
      .default('train')
      .describe(
        'What becomes of an episode whose agent rewrote its history, or had sub-agents. train: each path of turns is a sequence of the episode. fail: it has failed.',
      ),
    concurrency: count(1000, 'a machine has no room for more')
      .default(8)
      .describe('Agents that one rollout worker runs at once.'),
  })
  .optional()
  .describe(
    'An agent that exists makes the episodes: it samples through a gateway that speaks the APIs of OpenAI and Anthropic, with tools of its own or those of the environment; see docs/agents.md. Absent: the policy acts with the tools of the environment.',
  );

/** An agent that makes the episodes of a run. */
export type AgentSpec = NonNullable<z.output<typeof agentSchema>>;

/** What the gateway and the task are told by, which nobody else may set. */
const OWN = /^(OPENAI|ANTHROPIC)_(BASE_URL|API_KEY|MODEL)$|^GRADUS_(TASK|ANSWER|TOOLS_URL)$/;

/** What is looked at of the rest of the spec. */
interface BesideAgent {
  agent?: AgentSpec | undefined;
  policy?: { kind: string } | undefined;
  stages: readonly (
    | { kind: 'supervised' | 'reward'; tasks: WrittenTasks }
    | {
        kind: 'rl';
        tasks: WrittenTasks;
        collect: { kind: string };
        exploration?: { toolChoice?: number | undefined } | undefined;
        algorithm: { kind: string };
      }
  )[];
  evaluation: { tasks: WrittenTasks };
}

/** What cannot be done where an agent of somebody else's acts. */
export function checkAgent(
  { agent, policy, stages, evaluation }: BesideAgent,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  if (agent === undefined) return;
  if ([agent.command, agent.url, agent.own].filter((one) => one !== undefined).length !== 1)
    refuse(
      ['agent'],
      'give either a command that is started, a url that is asked, or own, a loop of the project',
    );
  if (agent.own)
    for (const { field, message } of refuseExtension('agent-loop', agent.own))
      refuse(['agent', 'own', field], message);
  if (agent.command === undefined)
    for (const field of ['sandbox', 'env', 'inheritEnv'] as const)
      if (agent[field]) refuse(['agent', field], 'is for a command, and others have their own: leave it out');
  for (const name of Object.keys(agent.env ?? {}))
    if (OWN.test(name)) refuse(['agent', 'env', name], 'is set by Gradus for each episode: leave it out');
  (agent.inheritEnv ?? []).forEach((name, i) => {
    if (OWN.test(name)) refuse(['agent', 'inheritEnv', i], 'is set by Gradus for each episode: leave it out');
  });
  if (policy?.kind === 'recorded')
    refuse(
      ['policy', 'kind'],
      'has recorded turns of episodes without an agent: leave out policy, or leave out agent',
    );
  const sections = stages.map(({ tasks }, s) => ({ tasks, at: ['stages', s, 'tasks'] }));
  for (const { tasks, at } of [...sections, { tasks: evaluation.tasks, at: ['evaluation', 'tasks'] }])
    tasks.forEach(({ environment }, i) => {
      if (agent.environmentTools || (environments.get(environment)?.resume ?? null) === null) return;
      refuse(
        [...at, i, 'environment'],
        `"${environment}" judges what happened in a session, which an agent cannot reach: let it call the environment's tools ("environmentTools": {}), or name an environment that judges answers`,
      );
    });
  stages.forEach((stage, s) => {
    if (stage.kind !== 'rl') return;
    const at = ['stages', s];
    if (stage.collect.kind === 'tree')
      refuse(
        [...at, 'collect', 'kind'],
        'an agent cannot go on from a turn of another episode: leave out collect',
      );
    if (stage.exploration?.toolChoice !== undefined)
      refuse(
        [...at, 'exploration', 'toolChoice'],
        'draws tools of the environment, and an agent brings its own: leave it out',
      );
    if (stage.algorithm.kind === 'hindsight')
      refuse(
        [...at, 'algorithm', 'kind'],
        'puts hints into prompts, and an agent writes its own: choose another method',
      );
  });
}
