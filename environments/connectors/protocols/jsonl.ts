import { defineEnvironment } from '../../contract/environment.ts';
import type { Environment, Task, Tool, Verifier } from '../../contract/environment.ts';
import type { Sessions } from '../../contract/session.ts';
import { exactMatch } from '../../verifiers/exact-match.ts';
import { DatasetRows, wrong } from './rows.ts';
import type { Row, RowChoices } from './rows.ts';

export interface JsonlChoices extends RowChoices {
  name: string;
  /** The column with the user's message, or what makes it of a row. */
  prompt: string | ((row: Row) => string);
  /** The column with the expected answer, or what makes it of a row; none unless given. */
  answer?: string | ((row: Row) => string);
  /** `exact-match` with the answer unless given. The row is the task's `info`. */
  verifiers?: readonly Verifier[];
  tools?: readonly Tool[];
  sessions?: Sessions;
  demonstrate?: Environment['demonstrate'];
}

/**
 * The rows of a JSONL file, such as one of Hugging Face's datasets, as tasks. Split by a stable hash of the prompt, a tenth
 * held out and a tenth for the report, unless `split` says otherwise. The environment's version is the file's SHA-256.
 * Throws GradusError('environment', 'rows') for a file, a row or a split that cannot be used.
 */
export function jsonl(choices: JsonlChoices): Environment {
  const {
    name,
    path,
    prompt,
    answer,
    verifiers = [exactMatch()],
    tools = [],
    sessions,
    demonstrate,
  } = choices;
  const promptOf = (row: Row): string => textOf(row, prompt, path);
  const rows = new DatasetRows(choices, promptOf);
  return defineEnvironment({
    name,
    version: rows.version,
    levels: rows.levels,
    tools,
    verifiers,
    ...(sessions && { sessions }),
    ...(demonstrate && { demonstrate }),
    taskCount: (split, level) => rows.count(split, level),
    task(ref): Task {
      const row = rows.row(ref);
      return {
        ref,
        prompt: promptOf(row),
        ...(answer !== undefined && { answer: textOf(row, answer, path) }),
        info: row,
      };
    },
  });
}

function textOf(row: Row, from: string | ((row: Row) => string), path: string): string {
  if (typeof from === 'function') return from(row);
  const value = row[from];
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  throw wrong(path, `has no text in column ${from} of a row: ${JSON.stringify(row).slice(0, 200)}`);
}
