import { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import type { ChatMessage } from '../../engine/dialect/contract.ts';
import { argumentsOf } from '../ask.ts';
import type { Ask } from '../ask.ts';
import { refuse } from '../problem.ts';
import type { Api, Frame, Told } from './contract.ts';
import { mayCall, openaiProblem, parameters, parsed, textOfContent, textParts } from './fields.ts';

const content = z.union([z.string(), textParts]).nullish();
const tokens = z.int().min(1).nullish();

const request = z.looseObject({
  model: z.string(),
  messages: z
    .array(
      z.looseObject({
        role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
        content,
        reasoning_content: z.string().nullish(),
        tool_calls: z
          .array(
            z.looseObject({
              id: z.string(),
              function: z.looseObject({ name: z.string(), arguments: z.string() }),
            }),
          )
          .nullish(),
        tool_call_id: z.string().nullish(),
        name: z.string().nullish(),
      }),
    )
    .min(1),
  tools: z
    .array(
      z.looseObject({
        type: z.literal('function', 'only functions can be called'),
        function: z.looseObject({ name: z.string(), description: z.string().nullish(), parameters }),
      }),
    )
    .nullish(),
  tool_choice: z.json().optional(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  n: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});

/** OpenAI's Chat Completions. */
export const chatCompletions: Api = {
  read(body) {
    const asked = parsed(request, body);
    if ((asked.n ?? 1) !== 1) refuse('n', 'must be 1: ask for each sample by a request of its own');
    if (asked.stop?.length) refuse('stop', 'would end turns where the policy does not: leave it out');
    if ((asked.top_logprobs ?? 0) > 0) refuse('top_logprobs', 'are not given: ask for logprobs alone');
    if (asked.response_format && asked.response_format.type !== 'text')
      refuse('response_format', 'cannot be forced on the policy: ask for text');
    const most = asked.max_completion_tokens ?? asked.max_tokens;
    return {
      model: asked.model,
      messages: asked.messages.map(messageOf),
      tools: mayCall(asked.tool_choice)
        ? (asked.tools ?? []).map(({ function: { name, description, parameters } }) => ({
            name,
            description: description ?? '',
            parameters: parameters ?? { type: 'object', properties: {} },
          }))
        : [],
      ...(most != null && { maxTokens: most }),
      stream: asked.stream ?? false,
      streamsUsage: asked.stream_options?.include_usage ?? false,
      logprobs: asked.logprobs ?? false,
    } satisfies Ask;
  },
  answer: (told) => ({
    ...headOf(told, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: { ...messageJson(told), refusal: null },
        logprobs: logprobsOf(told),
        finish_reason: finishOf(told),
      },
    ],
    usage: usageOf(told),
  }),
  frames(told) {
    const frame = (delta: Json, finish: string | null = null, logprobs: Json = null): Frame => ({
      data: {
        ...headOf(told, 'chat.completion.chunk'),
        choices: [{ index: 0, delta, logprobs, finish_reason: finish }],
      },
    });
    const { tool_calls: calls = [], content, ...message } = messageJson(told);
    const parts: Frame[] = [frame({ ...message, content: '' })];
    if (content !== null) parts.push(frame({ content }, null, logprobsOf(told)));
    calls.forEach((call, index) => parts.push(frame({ tool_calls: [{ index, ...call }] })));
    parts.push(frame({}, finishOf(told)));
    const used = { ...headOf(told, 'chat.completion.chunk'), choices: [], usage: usageOf(told) };
    if (told.ask.streamsUsage) parts.push({ data: used });
    return [...parts, { data: '[DONE]' }];
  },
  keepAlive: ': sampling\n\n',
  problem: openaiProblem,
};

function messageOf({
  role,
  content,
  reasoning_content: thought,
  tool_calls: calls,
  tool_call_id: callId,
  name,
}: z.output<typeof request>['messages'][number]): ChatMessage {
  return {
    role: role === 'developer' ? 'system' : role,
    content: textOfContent(content),
    ...(thought != null && { reasoning_content: thought }),
    ...(calls?.length && {
      tool_calls: calls.map(({ id, function: { name, arguments: text } }) => ({
        type: 'function' as const,
        id,
        function: { name, arguments: argumentsOf(text) },
      })),
    }),
    ...(callId != null && { tool_call_id: callId }),
    ...(name != null && { name }),
  };
}

const headOf = ({ turn, ask }: Told, object: string) => ({
  id: `chatcmpl-${turn.id}`,
  object,
  created: turn.created,
  model: ask.model,
});

function messageJson({ turn: { answer } }: Told) {
  const { content, reasoning_content: thought, tool_calls: calls } = answer;
  return {
    role: 'assistant',
    content: content === '' && calls ? null : content,
    ...(thought !== undefined && { reasoning_content: thought }),
    ...(calls && {
      tool_calls: calls.map(({ id, function: { name, arguments: given } }) => ({
        id: id!,
        type: 'function',
        function: { name, arguments: JSON.stringify(given) },
      })),
    }),
  };
}

const finishOf = ({ turn }: Told): string =>
  turn.finish === 'length' ? 'length' : turn.answer.tool_calls ? 'tool_calls' : 'stop';

const usageOf = ({ turn, promptTokens }: Told) => ({
  prompt_tokens: promptTokens,
  completion_tokens: turn.tokens.length,
  total_tokens: promptTokens + turn.tokens.length,
});

/** Of all tokens of the turn, in the distribution that they were sampled from. */
const logprobsOf = ({ turn, ask, textOf }: Told): Json =>
  ask.logprobs
    ? {
        content: turn.tokens.map((token, i) => ({
          token: textOf(token),
          logprob: turn.samplerLogprobs[i]!,
          bytes: [...new TextEncoder().encode(textOf(token))],
          top_logprobs: [],
        })),
        refusal: null,
      }
    : null;
