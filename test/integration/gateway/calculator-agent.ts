import OpenAI from 'openai';

// An agent that knows nothing of Gradus: it works out what it is given, with a calculator, and prints what it found.

const MOST_TURNS = 4;
const client = new OpenAI();
const model = process.env['OPENAI_MODEL']!;
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'calculate',
      description: 'Works out a sum of two numbers',
      parameters: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
      },
    },
  },
];

const messages: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'system', content: 'Use the calculator, then answer with the number alone.' },
  { role: 'user', content: process.argv[2]! },
];

function calculate(text: string): string {
  const { a, b } = JSON.parse(text) as { a?: number; b?: number };
  return typeof a === 'number' && typeof b === 'number' ? String(a + b) : 'error: give a and b';
}

let answer = '';
for (let turn = 0; turn < MOST_TURNS; turn++) {
  const stream = client.chat.completions.stream({ model, messages, tools, temperature: 0.2 });
  const { message } = (await stream.finalChatCompletion()).choices[0]!;
  messages.push(message);
  for (const call of message.tool_calls ?? []) {
    if (call.type !== 'function') continue;
    messages.push({ role: 'tool', tool_call_id: call.id, content: calculate(call.function.arguments) });
  }
  if (message.tool_calls?.length) continue;
  answer = message.content ?? '';
  if (/^-?\d+$/.test(answer)) break;
  messages.push({ role: 'user', content: 'Answer with a number.' });
}

process.stdout.write(answer);
