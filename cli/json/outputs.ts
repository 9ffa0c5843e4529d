import { z } from 'zod';
import { compareOutput, reweighOutput } from './comparison.ts';
import { checkOutput, environmentOutput } from './environments.ts';
import { episodeOutput, foundOutput, replayOutput, textHitOutput, timelineOutput } from './episodes.ts';
import { evaluateOutput } from './evaluate.ts';
import { bytesOutput, operationsOutput, whyOutput } from './operations.ts';
import { recipeOutput } from './recipes.ts';
import {
  checkpointOutput,
  ledgerOutput,
  metricsOutput,
  reviewOutput,
  runOutput,
  trainOutput,
} from './runs.ts';

/** What `--json` prints, by command. Loaded by tests and by whoever writes the schema: commands need the types alone. */
export const OUTPUTS = {
  check: checkOutput.describe('gradus check --json: one object'),
  checkpoints: checkpointOutput.describe('gradus checkpoints --json: one object a line'),
  compare: compareOutput.describe('gradus compare --json: one object'),
  environments: environmentOutput.describe('gradus environments --json: one object a line'),
  episode: episodeOutput.describe('gradus episode --json, and a line of gradus find --jsonl: one object'),
  evaluate: evaluateOutput.describe('gradus evaluate --json: one object'),
  find: foundOutput.describe('gradus find --json: one object a line'),
  'find-text': textHitOutput.describe('gradus find --text … --json: one object a line'),
  ledger: ledgerOutput.describe('gradus ledger --json: one object a line'),
  metrics: metricsOutput.describe('gradus metrics --json: one object a line, for each step'),
  operations: operationsOutput.describe('gradus operations --json: one object'),
  'operations-bytes': bytesOutput.describe('gradus operations --bytes --json: one object'),
  recipes: recipeOutput.describe('gradus recipes --json: one object a line'),
  replay: replayOutput.describe('gradus replay --json: one object'),
  'review-list': reviewOutput.describe('gradus review list --json: one object a line'),
  reweigh: reweighOutput.describe('gradus reweigh --json: one object'),
  runs: runOutput.describe('gradus runs --json: one object a line'),
  timeline: timelineOutput.describe('gradus timeline --json: one object'),
  train: trainOutput.describe('gradus train --json, and the demo with --json: one object, the last line'),
  why: whyOutput.describe('gradus why --json: one object'),
} satisfies Record<string, z.ZodType>;

export type OutputName = keyof typeof OUTPUTS;

/** The JSON Schema of them all, each below `$defs`; `examples/output.schema.json` holds it. */
export function outputJsonSchema(): string {
  const defs = Object.entries(OUTPUTS).map(([name, schema]) => {
    const { $schema: _, ...json } = z.toJSONSchema(schema, { target: 'draft-2020-12' });
    return [name, json];
  });
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'What the commands of Gradus print with --json, by command',
    $defs: Object.fromEntries(defs) as object,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
