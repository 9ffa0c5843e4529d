import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { GradusError, isA } from '../core/errors.ts';
import type { AgentSandbox } from '../core/schema/agent.ts';
import type { Mount, Sandbox } from '../environments/sandbox/contract.ts';
import { openSandbox } from '../environments/sandbox/open-sandbox.ts';

/**
 * The sandbox for agents: the gateway's socket is mounted there, which others do not let through.
 * Throws GradusError('infra', 'no-sandbox'), which says what to install or to allow.
 */
export async function openAgentSandbox(): Promise<Sandbox> {
  const chosen = process.env['GRADUS_SANDBOX'];
  if (chosen === undefined || chosen === '' || chosen === 'bubblewrap')
    return openSandbox({ prefer: 'bubblewrap' });
  throw new GradusError(
    'infra',
    'no-sandbox',
    `An agent runs in bubblewrap alone, and GRADUS_SANDBOX asks for ${chosen}: start the rollout worker without it`,
  );
}

/** What an agent sees of the host besides /usr, each at the path that it has there, and the folder in which it starts. */
export function shownTo({ folder, read }: AgentSandbox): { cwd: string; mounts: Mount[] } {
  const cwd = path.resolve(folder);
  // Node runs the forwarder, and is there for the agent, too.
  const places = new Set([cwd, ...read.map((one) => path.resolve(one)), process.execPath]);
  const mounts = [...places].filter((at) => !isWithin('/usr', at)).map((at) => ({ at, from: at }));
  return { cwd, mounts };
}

/** What of the worker's own an agent is given: where programs are looked for. */
export const searchPath = (): Record<string, string> => {
  const value = process.env['PATH'];
  return value === undefined ? {} : { PATH: value };
};

/** What keeps this machine from starting a command in its sandbox, by the field of `agent` that it is about. */
export async function sandboxProblems(
  program: string,
  sandbox: AgentSandbox,
  variables: Readonly<Record<string, string>> = {},
): Promise<{ path: (string | number)[]; message: string }[]> {
  const secret = [...named(sandbox)].flatMap(([at, place]) => {
    const why = secretIn(place);
    return why === undefined ? [] : [{ path: at, message: why }];
  });
  if (secret.length > 0) return secret;
  const { cwd, mounts } = shownTo(sandbox);
  try {
    const { exit } = await (
      await openAgentSandbox()
    ).run({
      argv: ['/bin/sh', '-c', 'cd -- "$1" && command -v -- "$2"', 'sh', cwd, program],
      env: { ...searchPath(), ...variables },
      mounts,
    });
    if (exit === 0) return [];
    const message = `${JSON.stringify(program)} is no program that the sandbox of the agent shows: name the folder that it is installed in in agent.sandbox.read, or take one below /usr`;
    return [{ path: ['command', 0], message }];
  } catch (error) {
    if (!isA(error, GradusError) || (error.type !== 'no-sandbox' && error.type !== 'sandbox-command'))
      throw error;
    return [{ path: ['sandbox'], message: error.message }];
  }
}

function* named({ folder, read }: AgentSandbox): Iterable<[(string | number)[], string]> {
  yield [['sandbox', 'folder'], folder];
  for (const [i, one] of read.entries()) yield [['sandbox', 'read', i], one];
}

/** Why nothing that a policy moves may see this place; undefined where it may. */
function secretIn(place: string): string | undefined {
  const at = realOf(path.resolve(place));
  if (isWithin(at, realOf(homedir())))
    return `shows the agent ${homedir()}, the home of the rollout worker: name a folder in it`;
  const state = realOf(path.resolve(process.env['GRADUS_STATE_DIR'] || '.gradus'));
  if (existsSync(state) && (isWithin(at, state) || isWithin(state, at)))
    return `shows the agent ${state}, where the store and its keys lie: name a folder without it`;
  return undefined;
}

/** What is not there has no other name. */
const realOf = (place: string): string => (existsSync(place) ? realpathSync(place) : place);

const isWithin = (folder: string, place: string): boolean =>
  place === folder || place.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
