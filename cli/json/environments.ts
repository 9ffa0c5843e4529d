import { z } from 'zod';
import { count, strings } from './parts.ts';

const finding = z.strictObject({
  is: z.enum(['error', 'warning']),
  environment: z.string().nullable().describe('null for a module as a whole'),
  what: z.string(),
  remedy: z.string(),
});

export const checkOutput = z.strictObject({
  environments: z.array(
    z.strictObject({
      name: z.string(),
      file: z.string(),
      outcome: z.enum(['nothing-found', 'warnings', 'errors', 'not-looked-at']),
      why: z.string().nullable().describe('why it was not checked; null where it was'),
      seconds: z.number(),
      levels: z.array(z.int()),
      tools: strings,
      verifiers: strings,
      tasks: count.describe('made in each of two processes'),
      episodes: count.describe('of the expert'),
      turns: count,
      onceCalls: z
        .record(z.string(), z.strictObject({ performed: count, stubbed: count }))
        .describe("calls of tools with the effect 'once', by tool"),
      notChecked: strings,
    }),
  ),
  findings: z.array(finding),
});

export const environmentOutput = z.strictObject({
  name: z.string(),
  levels: z.array(z.int()),
  tools: strings,
  verifiers: strings,
  needs: z.array(
    z.strictObject({
      what: z.string(),
      present: z.boolean(),
      setUp: z.string().describe('the command that brings it'),
    }),
  ),
});
