import { OUTPUTS } from '../../cli/json/outputs.ts';
import type { OutputName } from '../../cli/json/outputs.ts';

/** Which of the outputs a command has, by what is typed behind `gradus`. */
function outputOf(args: readonly string[]): OutputName {
  const [command, part] = args;
  if (command === 'review') return `review-${part}` as OutputName;
  if (command === 'operations' && args.includes('--bytes')) return 'operations-bytes';
  if (command === 'find' && args.includes('--text')) return 'find-text';
  return command as OutputName;
}

/** Throws where a line that a command has printed with `--json` is not what its schema says. */
export function assertOutput(args: readonly string[], stdout: string): void {
  const name = outputOf(args);
  const schema = OUTPUTS[name];
  if (schema === undefined) throw new Error(`there is no schema of what ${name} prints`);
  for (const line of stdout.split('\n').filter((text) => text !== '')) {
    const read = schema.safeParse(JSON.parse(line));
    if (!read.success) {
      throw new Error(`${args.join(' ')}: ${read.error.message}\n${line.slice(0, 2000)}`);
    }
  }
}
