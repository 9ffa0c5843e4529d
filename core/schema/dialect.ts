import { z } from 'zod';
import { DIALECTS } from '../names.ts';
import type { DialectName } from '../names.ts';
import type { Refuse } from './check.ts';
import { refuseExtension } from '../extensions/registry.ts';
import { givenName, present } from '../fields.ts';
import type { Present } from '../fields.ts';
import type { SamplingSpec } from './sampling.ts';

export const dialectSchema = z
  .strictObject({
    name: z
      .enum([...DIALECTS, 'own'])
      .describe(
        'The form of tool calls and answers, by the model family or paper that it comes from. `own`: of the project.',
      ),
    own: z
      .strictObject({
        name: givenName.describe('As its module calls it.'),
        options: z.record(z.string(), z.json()).default({}).describe('What the dialect itself reads.'),
      })
      .optional()
      .describe('Of `own`: a dialect that a module of the project brings (docs/extend.md).'),
    describeTools: z
      .boolean()
      .optional()
      .describe(
        'gradus: whether prompts describe the tools, in a system message. Default: they do not, and demonstrations teach them.',
      ),
    thinking: z.boolean().optional().describe('What the chat template reads as enable_thinking.'),
    date: z.iso.date().optional().describe('The date that the chat template reads, YYYY-MM-DD.'),
    tool: givenName
      .optional()
      .describe('search-r1 and retool: the tool that the tag calls. Needed where there are several.'),
    argument: givenName
      .optional()
      .describe('search-r1 and retool: its text argument. Needed where it has several.'),
  })
  .describe('How the policy calls tools and answers. Default: the dialect of the checkpoint.');

type WrittenDialect = z.output<typeof dialectSchema>;

/** How a policy is spoken to. Recorded in the checkpoint, so that everybody who uses it speaks the same. */
export type DialectSpec = Present<WrittenDialect>;

/** Fields that are absent stay absent. */
export const dialectOfSpec = (written: WrittenDialect): DialectSpec =>
  Object.fromEntries(present(written)) as unknown as DialectSpec;

/** Dialects whose turns end with a call. */
const ONE_CALL: readonly DialectSpec['name'][] = ['gradus', 'search-r1', 'retool'];

/** Those of Gradus whose turns may have several. */
export const SEVERAL_CALLS = DIALECTS.filter((one) => !ONE_CALL.includes(one));

/** Why a dialect cannot make as many calls in a turn; null where it can. */
export const refusalOfCalls = (
  name: DialectSpec['name'],
  { maxParallelCalls = 1 }: Pick<SamplingSpec, 'maxParallelCalls'>,
): string | null =>
  maxParallelCalls > 1 && ONE_CALL.includes(name)
    ? `a turn of ${name} ends with its call, so that it has no second one: leave it out, or take ${SEVERAL_CALLS.join(', ')} as model.dialect`
    : null;

export function checkDialect(
  { from, dialect }: { from?: string | undefined; dialect?: WrittenDialect | undefined },
  refuse: Refuse,
): void {
  if (!dialect) return;
  const at = ['model', 'dialect'];
  if (from === undefined && dialect.name !== 'gradus') {
    refuse(
      [...at, 'name'],
      `a model from scratch speaks gradus, with a tokenizer of its own: leave it out, or name a checkpoint in model.from that speaks ${dialect.name}`,
    );
  }
  if ((dialect.name === 'own') !== (dialect.own !== undefined))
    refuse(
      [...at, 'own'],
      dialect.own
        ? 'is for the name "own": give that, or leave it out'
        : 'is missing: say which, by its name',
    );
  if (dialect.own)
    for (const { field, message } of refuseExtension('dialect', dialect.own))
      refuse([...at, 'own', field], message);
  const readBy: Record<'describeTools' | 'thinking' | 'date' | 'tool' | 'argument', readonly DialectName[]> =
    {
      describeTools: ['gradus'],
      thinking: DIALECTS.filter((name) => name !== 'gradus'),
      date: DIALECTS.filter((name) => name !== 'gradus'),
      tool: ['search-r1', 'retool'],
      argument: ['search-r1', 'retool'],
    };
  for (const [field, names] of Object.entries(readBy)) {
    if (dialect[field as keyof typeof readBy] !== undefined && !names.includes(dialect.name)) {
      refuse([...at, field], `has no effect for ${dialect.name}; ${names.join(', ')} read it`);
    }
  }
}
