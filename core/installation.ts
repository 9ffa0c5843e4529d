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
