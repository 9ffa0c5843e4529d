import { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import type { ChatMessage } from '../../engine/dialect/contract.ts';
import { argumentsOf } from '../ask.ts';
import { Problem, refuse } from '../problem.ts';
import type { StoredTurn } from '../stored-turn.ts';
import type { Api, Frame, Told } from './contract.ts';
import { mayCall, openaiProblem, parameters, parsed, textOfContent, textParts } from './fields.ts';

const item = z.looseObject({
  type: z.string().optional(),
  id: z.string().nullish(),
  role: z.enum(['system', 'developer', 'user', 'assistant']).optional(),
  content: z.union([z.string(), textParts]).nullish(),
  summary: textParts.nullish(),
  call_id: z.string().optional(),
  name: z.string().optional(),
  arguments: z.string().optional(),
  output: z.union([z.string(), textParts]).optional(),
});

const request = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(item).min(1)]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  tools: z
    .array(
      z.looseObject({
        type: z.literal('function', 'only functions can be called'),
        name: z.string(),
        description: z.string().nullish(),
        parameters,
      }),
    )
    .nullish(),
  tool_choice: z.json().optional(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  background: z.boolean().nullish(),
  stream: z.boolean().nullish(),
});

/** OpenAI's Responses. */
export const responses: Api = {
  read(body, turnOf) {
    const asked = parsed(request, body);
    if (asked.background) refuse('background', 'is not served: wait for the answer, or stream it');
    if ((asked.text?.format?.type ?? 'text') !== 'text')
      refuse('text.format', 'cannot be forced on the policy: ask for text');
    const { instructions, input, previous_response_id: previous } = asked;
    return {
      model: asked.model,
      messages: [
        ...(instructions ? [{ role: 'system' as const, content: instructions }] : []),
        ...(typeof input === 'string'
          ? [{ role: 'user' as const, content: input }]
          : messagesOf(input.map((one) => sentBack(one, turnOf)))),
      ],
      tools: mayCall(asked.tool_choice)
        ? (asked.tools ?? []).map(({ name, description, parameters }) => ({
            name,
            description: description ?? '',
            parameters: parameters ?? { type: 'object', properties: {} },
          }))
        : [],
      ...(asked.max_output_tokens != null && { maxTokens: asked.max_output_tokens }),
      ...(previous != null && { previous: previous.replace(/^resp_/, '') }),
      stream: asked.stream ?? false,
    };
  },
  answer: (told) => responseOf(told, outputOf(told)),
  frames(told) {
    const output = outputOf(told);
    const begun = { ...responseOf(told, []), status: 'in_progress', usage: null };
    const frames: { [key: string]: Json }[] = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
    ];
    output.forEach((one, index) => {
      const at = { output_index: index, item_id: one['id']! };
      const unfinished = one['type'] === 'function_call' ? { arguments: '' } : { content: [] };
      frames.push({
        type: 'response.output_item.added',
        output_index: index,
        item: { ...one, status: 'in_progress', ...(one['type'] !== 'reasoning' && unfinished) },
      });
      if (one['type'] === 'function_call') {
        const given = one['arguments']!;
        frames.push({ type: 'response.function_call_arguments.delta', ...at, delta: given });
        frames.push({
          type: 'response.function_call_arguments.done',
          ...at,
          name: one['name']!,
          arguments: given,
        });
      }
      if (one['type'] === 'message') {
        const [part] = one['content'] as [{ text: string }];
        const within = { ...at, content_index: 0 };
        frames.push({ type: 'response.content_part.added', ...within, part: { ...part, text: '' } });
        frames.push({ type: 'response.output_text.delta', ...within, delta: part.text, logprobs: [] });
        frames.push({ type: 'response.output_text.done', ...within, text: part.text, logprobs: [] });
        frames.push({ type: 'response.content_part.done', ...within, part });
      }
      frames.push({ type: 'response.output_item.done', output_index: index, item: one });
    });
    const response = responseOf(told, output);
    frames.push({ type: `response.${response.status}`, response });
    return frames.map((data, number): Frame => ({
      event: data['type'] as string,
      data: { ...data, sequence_number: number },
    }));
  },
  keepAlive: ': sampling\n\n',
  problem: openaiProblem,
};

/** An item that was given before and is named (Vercel's AI SDK), as if it had been sent back. Throws Problem(404). */
function sentBack(
  one: z.output<typeof item>,
  turnOf: (id: string) => StoredTurn | undefined,
): z.output<typeof item> {
  if (one.type !== 'item_reference') return one;
  const turn = turnOf(/^[a-z]+_([0-9a-f]{32})/u.exec(one.id ?? '')?.[1] ?? '');
  const found = turn && outputOf({ turn }).find(({ id }) => id === one.id);
  if (!found) throw new Problem(404, 'item_not_found', `There is no item ${one.id ?? ''} here`, 'input');
  return item.parse(found);
}

/** Thoughts and calls are items of their own here, and one turn everywhere else. */
function messagesOf(items: readonly z.output<typeof item>[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  const turn = (): ChatMessage => {
    const last = messages.at(-1);
    if (last?.role === 'assistant') return last;
    const begun: ChatMessage = { role: 'assistant', content: '' };
    messages.push(begun);
    return begun;
  };
  for (const one of items) {
    const { type = 'message', role = 'user' } = one;
    if (type === 'function_call') {
      (turn().tool_calls ??= []).push({
        type: 'function',
        id: one.call_id ?? '',
        function: { name: one.name ?? '', arguments: argumentsOf(one.arguments ?? '') },
      });
    } else if (type === 'function_call_output') {
      messages.push({
        role: 'tool',
        content: textOfContent(one.output),
        ...(one.call_id !== undefined && { tool_call_id: one.call_id }),
      });
    } else if (type === 'reasoning') {
      turn().reasoning_content = textOfContent(one.summary);
    } else if (type !== 'message') {
      refuse('input', `has an item of type ${type}, which is not served`);
    } else if (role === 'assistant') {
      turn().content += textOfContent(one.content);
    } else {
      messages.push({ role: role === 'developer' ? 'system' : role, content: textOfContent(one.content) });
    }
  }
  return messages;
}

function outputOf({ turn: { id, answer } }: Pick<Told, 'turn'>): { [key: string]: Json }[] {
  const { content, reasoning_content: thought, tool_calls: calls = [] } = answer;
  return [
    ...(thought === undefined
      ? []
      : [{ type: 'reasoning', id: `rs_${id}`, summary: [{ type: 'summary_text', text: thought }] }]),
    ...(content === '' && calls.length > 0
      ? []
      : [
          {
            type: 'message',
            id: `msg_${id}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: content, annotations: [], logprobs: [] }],
          },
        ]),
    ...calls.map((call, i) => ({
      type: 'function_call',
      id: `fc_${id}${i}`,
      call_id: call.id!,
      name: call.function.name,
      arguments: JSON.stringify(call.function.arguments),
      status: 'completed',
    })),
  ];
}

const responseOf = ({ turn, ask, promptTokens }: Told, output: Json[]) => ({
  id: `resp_${turn.id}`,
  object: 'response',
  created_at: turn.created,
  model: ask.model,
  status: turn.finish === 'length' ? 'incomplete' : 'completed',
  incomplete_details: turn.finish === 'length' ? { reason: 'max_output_tokens' } : null,
  error: null,
  instructions: null,
  metadata: {},
  output,
  parallel_tool_calls: true,
  previous_response_id: ask.previous === undefined ? null : `resp_${ask.previous}`,
  tool_choice: 'auto',
  tools: [],
  temperature: null,
  top_p: null,
  usage: {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: turn.tokens.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + turn.tokens.length,
  },
});
