// What Gradus is run from: a checkout, whose modules are TypeScript, or its package in somebody's project, where they are
// compiled JavaScript.

export const IN_CHECKOUT = import.meta.url.endsWith('.ts');

/** What a person types to have a command of Gradus run, such as `dev` or `setup`. */
export const commandLine = (command: string): string =>
  IN_CHECKOUT ? `npm run ${command.replace(/^setup /, 'setup:')}` : `npx gradus ${command}`;
