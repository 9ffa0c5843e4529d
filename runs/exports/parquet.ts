import { rename } from 'node:fs/promises';
import type { SchemaElement } from 'hyparquet';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import type { EpisodeRow } from '../episodes/episode-rows.ts';

type Cell = string | number | bigint | boolean | null;

interface Column {
  element: SchemaElement;
  of: (row: EpisodeRow) => Cell;
}

const text = { type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const;
const integer = { type: 'INT32' } as const;
const real = { type: 'DOUBLE' } as const;
const truth = { type: 'BOOLEAN' } as const;

const column = (
  name: string,
  type: Pick<SchemaElement, 'type' | 'converted_type'>,
  of: (row: EpisodeRow) => Cell,
): Column => ({ element: { name, ...type, repetition_type: 'OPTIONAL' }, of });

/** Of each row, and for each part of the run's reward what it said and added. */
const columnsFor = (parts: readonly string[]): Column[] => [
  column('stage', text, ({ stage }) => stage),
  column('step', integer, ({ step }) => step),
  column('group', integer, ({ group }) => group),
  column('sample', integer, ({ sample }) => sample),
  column('environment', text, ({ environment }) => environment),
  column('split', text, ({ split }) => split),
  column('level', real, ({ level }) => level),
  column('index', { type: 'INT64' }, ({ index }) => BigInt(index)),
  column('retried', truth, ({ retried }) => retried),
  column('hinted', truth, ({ hinted }) => hinted),
  column('weights', text, ({ weights }) => weights),
  column('status', text, ({ status }) => status),
  column('outcome', text, ({ outcome }) => outcome),
  column('reason', text, ({ reason }) => reason),
  column('boundary', text, ({ boundary }) => boundary),
  column('success', truth, ({ success }) => success),
  column('reward', real, ({ reward }) => reward),
  column('advantage', real, ({ advantage }) => advantage),
  column('turns', integer, ({ turns }) => turns),
  column('calls', integer, ({ calls }) => calls),
  column('prompt_tokens', integer, ({ promptTokens }) => promptTokens),
  column('sampled_tokens', integer, ({ sampledTokens }) => sampledTokens),
  column('observation_tokens', integer, ({ observationTokens }) => observationTokens),
  column('inherited_tokens', integer, ({ inheritedTokens }) => inheritedTokens),
  column('logprob_sum', real, ({ logprobSum }) => logprobSum),
  column('answer', text, ({ answer }) => answer),
  column('tools', text, ({ tools }) => JSON.stringify(tools)),
  column('errors', text, ({ errors }) => JSON.stringify(errors)),
  column('tool_seconds', real, ({ toolSeconds }) => toolSeconds),
  ...parts.flatMap((part) => [
    column(`score_${part}`, real, ({ scores }) => scores[part] ?? null),
    column(`contribution_${part}`, real, ({ contributions }) => contributions[part] ?? null),
  ]),
];

/** Rows of a row group, about: what is held in memory at once. */
const ROWS = 10_000;

/** Writes the rows as one Parquet file, which takes its name when it is whole. Returns how many there were. */
export async function writeParquet(
  file: string,
  parts: readonly string[],
  pages: AsyncIterable<EpisodeRow[]>,
): Promise<number> {
  const columns = columnsFor(parts);
  const begun = `${file}.begun`;
  const writer = new ParquetWriter({
    writer: fileWriter(begun),
    schema: [{ name: 'root', num_children: columns.length }, ...columns.map(({ element }) => element)],
    createdBy: 'gradus',
  });
  let rows: EpisodeRow[] = [];
  let written = 0;
  const flush = async (): Promise<void> => {
    const columnData = columns.map(({ element, of }) => ({ name: element.name, data: rows.map(of) }));
    await writer.write({ columnData, rowGroupSize: rows.length });
    written += rows.length;
    rows = [];
  };
  for await (const page of pages) {
    rows = rows.concat(page);
    if (rows.length >= ROWS) await flush();
  }
  if (rows.length > 0) await flush();
  await writer.finish();
  await rename(begun, file);
  return written;
}
