// What Gradus is run from: a checkout, whose modules are TypeScript, or its package in somebody's project, where they are
// compiled JavaScript.

export const IN_CHECKOUT = import.meta.url.endsWith('.ts');

/** What a person types to have a command of Gradus run, such as `dev`, `train SPEC`, `setup chemistry` or `setup python NAME`. */
export function commandLine(command: string): string {
  if (!IN_CHECKOUT) return `npx gradus ${command}`;
  if (!/^(dev|setup)\b/.test(command)) return `npm run gradus -- ${command}`;
  const [script, ...rest] = command.replace(/^setup (?=\S)/, 'setup:').split(' ');
  return ['npm run', script, ...(rest.length > 0 ? ['--', ...rest] : [])].join(' ');
}

/** Set for processes whose servers are held up by who started them. */
export const SERVERS_ARE_HELD_UP = 'GRADUS_SERVERS_HELD_UP';

/** What is to be done about a server that is not there; `setting` is the variable in which the address stands. */
export function whenServerIsAway(env: Readonly<Record<string, string | undefined>>, setting: string): string {
  return env[SERVERS_ARE_HELD_UP] === undefined
    ? `Start its server with "${commandLine('dev')}", or correct ${setting}`
    : 'It is started again by what started this dashboard; if that takes more than a minute, see the log of the servers';
}
