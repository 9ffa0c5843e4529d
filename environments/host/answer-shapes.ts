import { z } from 'zod';
import { BOUNDARIES } from '../../core/errors.ts';
import { TIERS } from '../../core/episode/outcome.ts';
import { SPLITS } from '../../core/refs.ts';
import type { HostAnswer, AskKind } from './asks.ts';

// What a host may answer, by what it was asked. The host makes its answers of these shapes; but users' code shares its
// process, and what comes is looked at once more where that code cannot reach.

/** Strict, so that nothing comes along that nobody asked for. */
const { strictObject: shape } = z;
const whatever = z.unknown();
const score = z.number().min(0).max(1);
/** A key that is absent, as JSON has it, and not one that is undefined. */
const text = z.string();

export const errorShape = shape({
  boundary: z.enum(BOUNDARIES),
  type: text,
  message: text,
  retryable: z.boolean(),
});

const limits = shape({
  timeoutSeconds: z.number(),
  heartbeatSeconds: z.number(),
  maxAttempts: z.number(),
  maxOutputCharacters: z.number(),
});
const tools = z.array(
  shape({
    name: text,
    placement: z.enum(['inline', 'long']),
    effect: z.enum(['pure', 'idempotent', 'once']),
    described: shape({ name: text, description: text, parameters: z.record(text, whatever) }),
    limits,
    ofSession: z.boolean(),
  }),
);

const count = z.union([z.number(), z.literal('endless'), shape({ broken: text })]);
const counts = z.record(text, count);
export const factsShape = shape({
  name: text,
  file: text,
  levels: z.array(z.int()),
  tools,
  verifiers: z.array(
    shape({
      name: text,
      version: text,
      tier: z.enum(TIERS),
      cost: shape({ seconds: z.number(), usd: z.number() }).exactOptional(),
      served: z
        .discriminatedUnion('by', [
          shape({ by: z.literal('function') }),
          shape({ by: z.literal('pool'), pool: text }),
          shape({ by: z.literal('people') }),
        ])
        .exactOptional(),
      limits: limits.omit({ maxOutputCharacters: true }).partial().exactOptional(),
      variables: z.array(text).exactOptional(),
    }),
  ),
  relabels: z.boolean(),
  proposals: shape({ levels: z.record(text, z.int()) }).nullable(),
  varies: z.boolean(),
  demonstrates: z.boolean(),
  presents: z.boolean(),
  resume: z.enum(['fold', 'replay', 'pin', 'snapshot', 'reattach']).nullable(),
  endSeconds: z.number().nullable(),
  version: text.nullable(),
  taskCounts: shape({ train: counts, heldout: counts, test: counts }),
});

const image = shape({ mediaType: text, data: text });
const observation = shape({
  text,
  error: z.enum(['malformed-call', 'unknown-tool', 'invalid-arguments', 'tool-error']).exactOptional(),
  seconds: z.number().min(0).exactOptional(),
  reward: z.number().exactOptional(),
  done: z.literal(true).exactOptional(),
  images: z
    .array(shape({ type: z.literal('image'), mediaType: text, sha256: text, bytes: z.int() }))
    .exactOptional(),
});
const endShape = shape({ reward: z.number().exactOptional(), info: whatever.exactOptional() });
const called = shape({
  observation,
  images: z.array(image).exactOptional(),
  session: shape({
    state: whatever.exactOptional(),
    snapshot: shape({ acts: z.int(), value: whatever }).exactOptional(),
    handle: whatever.exactOptional(),
    ended: endShape.exactOptional(),
  }).exactOptional(),
});

const meaning = {
  score: score.nullable(),
  worth: score.exactOptional(),
  steps: z.array(score).exactOptional(),
  canonical: text.exactOptional(),
  evidence: text.exactOptional(),
  fault: text.exactOptional(),
};
const said = z.array(shape({ verifier: text, version: text, ...meaning }));

const found = { evidence: text.exactOptional(), usd: z.number().exactOptional() };
const values = z.record(text, z.number());
const finding = z.discriminatedUnion('kind', [
  shape({ kind: z.literal('scored'), score, uncertainty: z.number().exactOptional(), ...found }),
  shape({ kind: z.literal('measured'), values, uncertainties: values.exactOptional(), ...found }),
  shape({ kind: z.literal('abstained'), type: text, reason: text, ...found }),
]);

const turn = shape({
  think: text.exactOptional(),
  call: shape({ name: text, arguments: whatever }).exactOptional(),
  calls: z
    .array(shape({ name: text, arguments: whatever, observation: text.exactOptional() }))
    .min(2)
    .exactOptional(),
  answer: text.exactOptional(),
  raw: text.exactOptional(),
  observation: text.exactOptional(),
});

const answers: Record<AskKind, z.ZodType> = {
  tasks: shape({ prompt: text, tools: tools.exactOptional() }),
  demonstrations: shape({
    prompt: text,
    demonstration: shape({ turns: z.array(turn), weight: z.number() }),
    tools: tools.exactOptional(),
  }),
  refusals: observation.nullable(),
  calls: called,
  endings: endShape,
  closings: z.null(),
  verdicts: said,
  subjects: whatever,
  interpretations: shape(meaning),
  hints: text,
  relabellings: shape({ prompt: text, said }).nullable(),
  proposals: z.discriminatedUnion('kind', [
    shape({ kind: z.literal('accepted'), proposal: whatever, canonical: text, like: text }),
    shape({ kind: z.literal('invalid'), reason: text }),
    shape({ kind: z.literal('malformed'), reason: text }),
    shape({ kind: z.literal('set-aside'), reason: text }),
  ]),
  variations: z.discriminatedUnion('kind', [
    shape({ kind: z.literal('task'), proposal: whatever, canonical: text, split: z.enum(SPLITS) }),
    shape({ kind: z.literal('none'), reason: text }),
  ]),
  findings: finding,
  // Whoever asked reads the blocks, which may be many.
  presentations: z.array(whatever),
};

const failed = shape({ error: errorShape });
const shapes = new Map(
  Object.entries(answers).map(([kind, ok]) => [kind, z.union([shape({ ok }), failed])] as const),
);

/** What a host has answered to an ask of this kind, or in words what is wrong with it. */
export function readAnswers(
  kind: AskKind,
  items: number,
  values: readonly unknown[],
): { value: HostAnswer[] } | { fault: string } {
  if (values.length !== items) return { fault: `gave ${values.length} answers to ${items} asks` };
  const one = shapes.get(kind)!;
  for (const answer of values) {
    if (one.safeParse(answer).success) continue;
    const of = typeof answer === 'object' && answer !== null && 'ok' in answer ? answers[kind] : failed;
    const { issues } = of.safeParse(of === failed ? answer : (answer as { ok: unknown }).ok).error ?? {};
    const where = issues?.[0] ? ` (${[...issues[0].path, ''].join('.')} ${issues[0].message})` : '';
    return { fault: `gave what is no answer to ${kind}${where.slice(0, 300)}` };
  }
  // As it came: what zod makes of it is a copy.
  return { value: values as HostAnswer[] };
}
