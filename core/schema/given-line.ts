import { z } from 'zod';
import { didYouMean } from '../did-you-mean.ts';
import type { ToolCall } from '../episode/episode.ts';
import type { Json } from '../json/json.ts';
import { LineProblem, parseGivenJson } from './given-json.ts';

// Lines of data in the shapes that the field has: OpenAI's `messages`, TRL's `prompt` with `completion` (and `label`) or with
// `chosen` and `rejected`, plain and conversational, and trajectories of ATIF. Each comes down to a prompt and the turns after it.

/** Of a weight: more is another learning rate. */
const MOST_WEIGHT = 1000;

export interface GivenMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string;
  reasoning_content?: string;
  call?: ToolCall;
  /** Two or more of one turn, in order. */
  calls?: ToolCall[];
  /** Of a result behind several calls: the place of the call that it answers. */
  answers?: number;
  /** Of an assistant's message: whether it is trained. */
  trained: boolean;
}

export interface GivenTool {
  name: string;
  description: string;
  parameters: { [key: string]: Json };
}

interface Given {
  /** Absent: those of nobody. */
  tools?: GivenTool[];
  weight: number;
}

/** A line, read. All messages behind the prompt are those of an episode. */
export type GivenLine =
  | (Given & {
      kind: 'demonstration';
      messages: GivenMessage[];
      /** TRL's `label`: whether it is good; absent: nobody says. */
      label?: boolean;
    })
  | (Given & {
      kind: 'preference';
      prompt: GivenMessage[];
      chosen: GivenMessage[];
      rejected: GivenMessage[];
    });

const text = z.string();
/** OpenAI's content may come in parts, of which only text is read. */
const content = z
  .union(
    [
      text,
      z.null(),
      z
        .array(z.looseObject({ type: z.literal('text'), text }))
        .transform((parts) => parts.map((part) => part.text).join('')),
    ],
    { error: 'must be text, or a list of parts of the type "text": others cannot be trained on' },
  )
  .optional()
  .transform((value) => value ?? '');

const toolCall = z.looseObject({
  id: text.nullish(),
  function: z.looseObject({ name: z.string().min(1), arguments: z.unknown() }),
});

const message = z.looseObject({
  role: z.string(),
  content,
  reasoning_content: text.nullish(),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: text.nullish(),
  /** OpenAI's fine-tuning: 0 leaves an assistant's message out of the loss. */
  weight: z
    .union([z.literal(0), z.literal(1)], {
      error: 'must be 0 or 1; a weight of another size stands beside the messages',
    })
    .optional(),
});

const tool = z.looseObject({
  function: z.looseObject({
    name: z.string().min(1),
    description: text.default(''),
    parameters: z.record(z.string(), z.json()).default({}),
  }),
});

const shared = {
  tools: z.array(tool).nullish(),
  /** Others keep something else under this name: only a truth value is one. */
  label: z.unknown().optional(),
  weight: z.number().positive().max(MOST_WEIGHT).optional(),
};
const side = z.union([text, z.array(message).nonempty()]);

const SHAPES = {
  messages: z.looseObject({ ...shared, messages: z.array(message).nonempty() }),
  completion: z.looseObject({ ...shared, prompt: side, completion: side }),
  preference: z.looseObject({ ...shared, prompt: side.optional(), chosen: side, rejected: side }),
};

const ROLES = ['system', 'user', 'assistant', 'tool'] as const;
/** Names of others for these. */
const OTHER_ROLES: Readonly<Record<string, GivenMessage['role']>> = { developer: 'system' };

export { LineProblem };

/** Reads one line. Throws LineProblem. */
export function readGivenLine(line: string): GivenLine {
  const json = parseGivenJson(line, 'the line');
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new LineProblem('is no JSON object');
  if ('chosen' in json || 'rejected' in json) return preferenceOf(read(SHAPES.preference, json));
  if ('messages' in json) {
    const { messages, ...rest } = read(SHAPES.messages, json);
    return demonstrationOf(messagesOf(messages), rest);
  }
  if ('completion' in json || 'prompt' in json) {
    const { prompt, completion, ...rest } = read(SHAPES.completion, json);
    const [before, behind] = sidesOf(prompt, completion);
    return demonstrationOf([...untrained(before), ...behind], rest);
  }
  if (typeof json['schema_version'] === 'string' && json['schema_version'].startsWith('ATIF-'))
    return ofAtif(json);
  throw new LineProblem(
    'has none of "messages", "prompt" and "completion", "chosen" and "rejected", or "schema_version" of ATIF',
  );
}

function read<Schema extends z.ZodType>(schema: Schema, json: Json): z.output<Schema> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const { path, message: why } = parsed.error.issues[0]!;
  throw new LineProblem(`${path.map(String).join('.') || 'the line'}: ${why}`);
}

type WrittenMessage = z.output<typeof message>;

function messageOf({
  role: written,
  content: said,
  reasoning_content: thought,
  tool_calls: calls,
  weight,
}: WrittenMessage): GivenMessage {
  const role = OTHER_ROLES[written] ?? ROLES.find((one) => one === written);
  if (role === undefined)
    throw new LineProblem(
      `has a message of role ${JSON.stringify(written.slice(0, 80))}${didYouMean(written, ROLES)}`,
    );
  const made = (calls ?? []).map(({ function: call }) => ({
    name: call.name,
    arguments: argumentsOf(call.arguments),
  }));
  if (made.length > 0 && role !== 'assistant')
    throw new LineProblem(`has a call in a message of role ${role}`);
  return {
    role,
    content: said,
    ...(thought && { reasoning_content: thought }),
    ...(made.length === 1 && { call: made[0]! }),
    ...(made.length > 1 && { calls: made }),
    trained: role === 'assistant' && weight !== 0,
  };
}

/**
 * What a tool said was said to a call of the turn before: behind several calls, to the one that it names, or else to the first
 * that no other result answers. Throws LineProblem for a result that names another call.
 */
function messagesOf(messages: readonly WrittenMessage[]): GivenMessage[] {
  const all: GivenMessage[] = [];
  for (let at = 0; at < messages.length;) {
    const turn = messages[at]!;
    const others = messages.slice(at + 1).findIndex(({ role }) => role !== 'tool');
    const end = others < 0 ? messages.length : at + 1 + others;
    const results = turn.role === 'tool' ? [] : messages.slice(at + 1, end);
    const ids = (turn.tool_calls ?? []).map(({ id }) => id ?? undefined);
    assertResultsAnswer(ids, results);
    const places = ids.length > 1 ? placesOf(ids, results) : [];
    all.push(messageOf(turn));
    for (const [i, result] of results.entries()) {
      const place = places[i];
      all.push({ ...messageOf(result), ...(place !== undefined && { answers: place }) });
    }
    at += 1 + results.length;
  }
  return all;
}

type Ids = readonly (string | undefined)[];

function assertResultsAnswer(ids: Ids, results: readonly WrittenMessage[]): void {
  const calls = ids.filter((id) => id !== undefined);
  for (const { tool_call_id: id } of results)
    if (id != null && calls.length > 0 && !calls.includes(id))
      throw new LineProblem(
        `has a result of the call ${quoted(id)} behind a message that makes ${calls.map(quoted).join(', ')}: let tool_call_id name the call that it answers`,
      );
}

/** Of each result the place of its call. */
function placesOf(ids: Ids, results: readonly WrittenMessage[]): number[] {
  const named = ids.filter((id) => id !== undefined);
  const twice = named.find((id, i) => named.indexOf(id) !== i);
  if (twice !== undefined)
    throw new LineProblem(`has two calls of the id ${quoted(twice)} in one message: give each call its own`);
  const free = new Set(ids.keys());
  const take = (place: number | undefined, id?: string | null): number => {
    if (place !== undefined && free.delete(place)) return place;
    throw new LineProblem(
      id == null
        ? `has ${results.length} results behind a message with ${ids.length} calls: give each call one`
        : `has a second result of the call ${quoted(id)}: give each call one`,
    );
  };
  // Whoever names a call has it, wherever it stands.
  const places = results.map(({ tool_call_id: id }) => {
    const place = id == null ? -1 : ids.indexOf(id);
    return place < 0 ? undefined : take(place, id);
  });
  return places.map((place) => place ?? take([...free][0]));
}

const quoted = (id: string): string => JSON.stringify(id.slice(0, 80));

/** Text of JSON in OpenAI's API; some write the object itself. */
function argumentsOf(written: unknown): Json {
  if (written === undefined) return {};
  return typeof written === 'string' ? parseGivenJson(written, 'the arguments of a call') : (written as Json);
}

/** What is read first, and what follows: a result there may answer a call of the prompt. */
function sidesOf(
  prompt: string | WrittenMessage[],
  side: string | WrittenMessage[],
): [before: GivenMessage[], behind: GivenMessage[]] {
  const said = (text: string, role: 'user' | 'assistant'): WrittenMessage => ({ role, content: text });
  const before = typeof prompt === 'string' ? [said(prompt, 'user')] : prompt;
  const all = messagesOf([...before, ...(typeof side === 'string' ? [said(side, 'assistant')] : side)]);
  return [all.slice(0, before.length), all.slice(before.length)];
}

const untrained = (messages: readonly GivenMessage[]): GivenMessage[] =>
  messages.map((one) => ({ ...one, trained: false }));

function givenOf({
  tools,
  weight = 1,
}: {
  tools?: z.output<typeof tool>[] | null | undefined;
  weight?: number | undefined;
}): Given {
  const described = tools?.map(({ function: { name, description, parameters } }) => ({
    name,
    description,
    parameters,
  }));
  return { weight, ...(described && { tools: described }) };
}

function demonstrationOf(
  messages: GivenMessage[],
  { label, ...rest }: Parameters<typeof givenOf>[0] & { label?: unknown },
): GivenLine {
  if (!messages.some(({ trained }) => trained))
    throw new LineProblem('has nothing that the assistant said, which is all that is trained on');
  return {
    kind: 'demonstration',
    messages,
    ...givenOf(rest),
    ...(typeof label === 'boolean' && { label }),
  };
}

function preferenceOf({ prompt, chosen, rejected, ...rest }: z.output<typeof SHAPES.preference>): GivenLine {
  const [[asked, better], [, worse]] = [chosen, rejected].map((side) => sidesOf(prompt ?? [], side)) as [
    [GivenMessage[], GivenMessage[]],
    [GivenMessage[], GivenMessage[]],
  ];
  // TRL's implicit prompt: what both begin with.
  const common = prompt === undefined ? commonPrefix(better, worse) : 0;
  const before = prompt === undefined ? better.slice(0, common) : asked;
  if (before.length === 0)
    throw new LineProblem('has no prompt: give one, or let chosen and rejected begin alike');
  const sides = { chosen: better.slice(common), rejected: worse.slice(common) };
  for (const [name, messages] of Object.entries(sides))
    if (!messages.some(({ trained }) => trained))
      throw new LineProblem(`has nothing that the assistant said in ${name}`);
  if (JSON.stringify(sides.chosen) === JSON.stringify(sides.rejected))
    throw new LineProblem('says the same in chosen and rejected, of which neither can be preferred');
  return { kind: 'preference', prompt: untrained(before), ...sides, ...givenOf(rest) };
}

function commonPrefix(a: readonly GivenMessage[], b: readonly GivenMessage[]): number {
  let length = 0;
  while (length < Math.min(a.length, b.length) && JSON.stringify(a[length]) === JSON.stringify(b[length]))
    length++;
  return length;
}

const atif = z.looseObject({
  agent: z.looseObject({ tool_definitions: z.array(tool).nullish() }).optional(),
  steps: z
    .array(
      z.looseObject({
        source: z.enum(['system', 'user', 'agent']),
        message: content,
        reasoning_content: text.nullish(),
        tool_calls: z
          .array(
            z.looseObject({
              tool_call_id: text.nullish(),
              function_name: z.string().min(1),
              arguments: z.json(),
            }),
          )
          .nullish(),
        observation: z
          .looseObject({ results: z.array(z.looseObject({ source_call_id: text.nullish(), content })) })
          .nullish(),
        is_copied_context: z.boolean().optional(),
      }),
    )
    .nonempty(),
});

/** A trajectory of ATIF (Harbor's RFC 0001): a step of the agent is its message with what came back. */
function ofAtif(json: Json): GivenLine {
  const { agent, steps } = read(atif, json);
  const messages = steps.flatMap(
    ({ source, message: said, reasoning_content, tool_calls: calls, observation }): WrittenMessage[] => {
      const own: WrittenMessage = {
        role: source === 'agent' ? 'assistant' : source,
        content: said,
        reasoning_content,
        tool_calls: calls?.map(({ tool_call_id: id, function_name: name, arguments: given }) => ({
          id,
          function: { name, arguments: given },
        })),
      };
      const results = (observation?.results ?? []).map(({ source_call_id: id, content: brought }) => ({
        role: 'tool',
        content: brought,
        tool_call_id: id,
      }));
      return [own, ...results];
    },
  );
  return demonstrationOf(messagesOf(messages), { tools: agent?.tool_definitions ?? undefined });
}
