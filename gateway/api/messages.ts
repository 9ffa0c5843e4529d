import { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import type { ChatMessage } from '../../engine/dialect/contract.ts';
import { refuse } from '../problem.ts';
import type { Api, Frame, Told } from './contract.ts';
import { mayCall, parameters, parsed, textOfContent, textParts } from './fields.ts';

const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  thinking: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: z.json().optional(),
  tool_use_id: z.string().optional(),
  content: z.union([z.string(), textParts]).optional(),
});
type Block = z.output<typeof block>;

const request = z.looseObject({
  model: z.string(),
  system: z.union([z.string(), textParts]).nullish(),
  messages: z
    .array(
      z.looseObject({
        role: z.enum(['user', 'assistant', 'system']),
        content: z.union([z.string(), z.array(block)]),
      }),
    )
    .min(1),
  tools: z
    .array(
      z.looseObject({
        type: z.literal('custom', 'tools of the server are not served').nullish(),
        name: z.string(),
        description: z.string().nullish(),
        input_schema: parameters,
      }),
    )
    .nullish(),
  tool_choice: z.json().optional(),
  stop_sequences: z.array(z.string()).nullish(),
  max_tokens: z.int().min(1).optional(),
  stream: z.boolean().nullish(),
});

/** Anthropic's Messages. */
export const anthropicMessages: Api = {
  read(body) {
    const asked = parsed(request, body);
    if (asked.stop_sequences?.length)
      refuse('stop_sequences', 'would end turns where the policy does not: leave them out');
    const system = textOfContent(asked.system);
    return {
      model: asked.model,
      messages: [
        ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
        ...asked.messages.flatMap(({ role, content }) =>
          typeof content === 'string' ? [{ role, content }] : messagesOf(role, content),
        ),
      ],
      tools: mayCall(asked.tool_choice)
        ? (asked.tools ?? []).map(({ name, description, input_schema: schema }) => ({
            name,
            description: description ?? '',
            parameters: schema ?? { type: 'object', properties: {} },
          }))
        : [],
      ...(asked.max_tokens !== undefined && { maxTokens: asked.max_tokens }),
      stream: asked.stream ?? false,
    };
  },
  answer: (told) => ({
    ...headOf(told),
    content: blocksOf(told),
    stop_reason: stopOf(told),
    stop_sequence: null,
    usage: { input_tokens: told.promptTokens, output_tokens: told.turn.tokens.length },
  }),
  frames(told) {
    const frame = (type: string, more: { [key: string]: Json } = {}): Frame => ({
      event: type,
      data: { type, ...more },
    });
    const message = {
      ...headOf(told),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: told.promptTokens, output_tokens: 0 },
    };
    return [
      frame('message_start', { message }),
      ...blocksOf(told).flatMap((one, index) => {
        const { start, deltas } = inPieces(one);
        return [
          frame('content_block_start', { index, content_block: start }),
          ...deltas.map((delta) => frame('content_block_delta', { index, delta })),
          frame('content_block_stop', { index }),
        ];
      }),
      frame('message_delta', {
        delta: { stop_reason: stopOf(told), stop_sequence: null },
        usage: { output_tokens: told.turn.tokens.length },
      }),
      frame('message_stop'),
    ];
  },
  keepAlive: 'event: ping\ndata: {"type": "ping"}\n\n',
  problem: ({ status, message }) => ({
    type: 'error',
    error: { type: KINDS[status] ?? 'api_error', message },
  }),
};

const KINDS: { [status: number]: string } = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  409: 'invalid_request_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
};

/** Results come before what the user says, each as a message of its tool. */
function messagesOf(role: ChatMessage['role'], blocks: readonly Block[]): ChatMessage[] {
  const results = blocks.filter(({ type }) => type === 'tool_result');
  const calls = blocks.filter(({ type }) => type === 'tool_use');
  const thought = blocks.filter(({ type }) => type === 'thinking').map(({ thinking = '' }) => thinking);
  const own = ['tool_result', 'tool_use', 'thinking', 'redacted_thinking'];
  const said = blocks.filter(({ type }) => !own.includes(type));
  const message: ChatMessage = {
    role,
    content: textOfContent(said),
    ...(thought.length > 0 && { reasoning_content: thought.join('\n') }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id = '', name = '', input = {} }) => ({
        type: 'function' as const,
        id,
        function: { name, arguments: input },
      })),
    }),
  };
  return [
    ...results.map(({ tool_use_id: id = '', content }) => ({
      role: 'tool' as const,
      content: textOfContent(content),
      tool_call_id: id,
    })),
    ...(role === 'assistant' || said.length > 0 ? [message] : []),
  ];
}

const headOf = ({ turn, ask }: Told) => ({
  id: `msg_${turn.id}`,
  type: 'message',
  role: 'assistant',
  model: ask.model,
});

function blocksOf({ turn: { answer } }: Told): { [key: string]: Json }[] {
  const { content, reasoning_content: thinking, tool_calls: calls = [] } = answer;
  return [
    ...(thinking === undefined ? [] : [{ type: 'thinking', thinking, signature: '' }]),
    ...(content === '' ? [] : [{ type: 'text', text: content }]),
    ...calls.map(({ id, function: { name, arguments: input } }) => ({
      type: 'tool_use',
      id: id!,
      name,
      input,
    })),
  ];
}

/** A block as it begins, and what makes it whole. */
function inPieces(block: { [key: string]: Json }): { start: Json; deltas: Json[] } {
  if (block['type'] === 'text')
    return { start: { ...block, text: '' }, deltas: [{ type: 'text_delta', text: block['text']! }] };
  if (block['type'] === 'thinking')
    return {
      start: { ...block, thinking: '' },
      deltas: [{ type: 'thinking_delta', thinking: block['thinking']! }],
    };
  return {
    start: { ...block, input: {} },
    deltas: [{ type: 'input_json_delta', partial_json: JSON.stringify(block['input']) }],
  };
}

const stopOf = ({ turn }: Told): string =>
  turn.finish === 'length' ? 'max_tokens' : turn.answer.tool_calls ? 'tool_use' : 'end_turn';
