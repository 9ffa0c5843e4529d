import path from 'node:path';
import { GradusError } from '../../../../core/errors.ts';

/** What of an image there is without Docker: a Debian with Python stands in for the base, whatever its version. */
interface Image {
  /** Absolute. */
  workdir: string;
  copies: readonly Copied[];
  env: Readonly<Record<string, string>>;
}

/** From a path below environment/ to an absolute one, in their order; a folder's content goes where it is told. */
export interface Copied {
  from: string;
  to: string;
  /** Whether `to` is told to be a folder, into which a file goes. */
  into: boolean;
}

const BASE = /^(?:docker\.io\/)?(?:library\/)?(?:python|debian|ubuntu)(?::[\w.-]+)?$/u;
const PIP_OPTION = /^(?:--no-cache-dir|--no-deps|--quiet|-q|--system|--break-system-packages)$/u;

/**
 * Reads a Dockerfile of a base, WORKDIR, ENV, COPY from beside it, and RUN pip install of what is `held` (name to version).
 * Throws GradusError('environment', 'harbor') for anything more, which takes Docker.
 */
export function readDockerfile(text: string, held: ReadonlyMap<string, string>): Image {
  let based = false;
  let workdir = '/';
  const env: Record<string, string> = {};
  const copies: Copied[] = [];
  for (const [instruction, rest] of instructionsOf(text)) {
    const words = rest.split(/\s+/u);
    const refuse = (why: string): never => refused(`${instruction} ${rest}`.slice(0, 120), why);
    if (!based && instruction !== 'FROM') refuse('comes before FROM');
    switch (instruction) {
      case 'FROM':
        if (based || words.length > 1 || !BASE.test(rest)) {
          refuse('is not one base image of Python, Debian or Ubuntu');
        }
        based = true;
        break;
      case 'WORKDIR':
        workdir = absolute(workdir, rest);
        break;
      case 'ENV':
        Object.assign(env, variablesOf(rest) ?? refuse('is not NAME=VALUE in plain letters'));
        break;
      case 'COPY': {
        const to = words.pop()!;
        const plain = words.every((word) => /^[\w./@+=~-]+$/u.test(word) && !word.split('/').includes('..'));
        if (words.length === 0 || !plain || rest.startsWith('-') || /[$"[*?]/u.test(to)) {
          refuse('is more than files beside the Dockerfile and where they go');
        }
        const into = words.length > 1 || /(?:^|\/)\.?$/u.test(to);
        copies.push(...words.map((from) => ({ from, to: absolute(workdir, to), into })));
        break;
      }
      case 'RUN':
        for (const command of rest.split('&&')) {
          const unknown = notHeld(command.trim(), held);
          if (unknown !== undefined) refuse(unknown);
        }
        break;
      case 'LABEL':
      case 'CMD':
        break;
      default:
        refuse('takes Docker');
    }
  }
  if (!based) refused('the Dockerfile', 'has no FROM');
  return { workdir, copies, env };
}

/** Instructions with what comes after them, continued lines in one, without comments. */
function instructionsOf(text: string): [string, string][] {
  const lines = text.split('\n').filter((line) => !/^\s*#/u.test(line));
  return lines
    .join('\n')
    .replace(/\\\s*\n/gu, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [instruction = '', rest = ''] = line.split(/\s+(.*)/u);
      return [instruction.toUpperCase(), rest];
    });
}

const absolute = (workdir: string, place: string): string => path.posix.resolve(workdir, place);

function variablesOf(rest: string): Record<string, string> | undefined {
  const found: Record<string, string> = {};
  for (const word of rest.split(/\s+/u)) {
    const pair = /^([A-Za-z_]\w*)=("?)([^$"'\\]*)\2$/u.exec(word);
    if (pair === null) return undefined;
    found[pair[1]!] = pair[3]!;
  }
  return found;
}

/** What of a command is not there without Docker; undefined where all is. */
function notHeld(command: string, held: ReadonlyMap<string, string>): string | undefined {
  const [, rest] = /^(?:(?:python3? -m |uv )?pip3? install)\s+(.*)$/u.exec(command) ?? [];
  if (rest === undefined) return `has a command that is no pip install: ${command}`;
  for (const word of rest.split(/\s+/u).filter((one) => !PIP_OPTION.test(one))) {
    const [name = '', version] = word.split('==');
    if (!held.has(name) || (version ?? held.get(name)) !== held.get(name)) {
      return `installs ${word}, which is not held here: there are ${[...held].map((pin) => pin.join('==')).join(', ')}`;
    }
  }
  return undefined;
}

function refused(what: string, why: string): never {
  throw new GradusError('environment', 'harbor', `${what}: ${why}`);
}
