import { writeFileSync } from 'node:fs';
import OpenAI from 'openai';

// An agent that knows nothing of Gradus: it works through a sum with a calculator of its own. The SDK finds its server in
// OPENAI_BASE_URL; the task is in GRADUS_TASK, and the answer goes to the file that GRADUS_ANSWER names.

const MOST_TURNS = 8;
const client = new OpenAI();
const tools = [
  {
    type: 'function',
    function: {
      name: 'calculator',
      description: 'Does one exact operation on two whole numbers, like 12+7.',
      parameters: {
        type: 'object',
        properties: { expression: { type: 'string' } },
        required: ['expression'],
      },
    },
  },
];
const messages = [{ role: 'user', content: process.env.GRADUS_TASK }];

/** One operation on two whole numbers; a division must come out even. */
function calculate({ expression }) {
  const [, left, sign, right] = /^(-?\d+)([-+*/])(-?\d+)$/.exec(String(expression).replaceAll(' ', '')) ?? [];
  if (sign === undefined) return 'error: one operation at a time, like 12+7';
  const [a, b] = [BigInt(left), BigInt(right)];
  if (sign === '/') return b !== 0n && a % b === 0n ? String(a / b) : 'error: that does not come out even';
  return String(sign === '+' ? a + b : sign === '-' ? a - b : a * b);
}

function argumentsOf(call) {
  try {
    return JSON.parse(call.function.arguments);
  } catch {
    return {};
  }
}

for (let turn = 0; turn < MOST_TURNS; turn++) {
  const { choices } = await client.chat.completions.create({
    model: process.env.OPENAI_MODEL,
    messages,
    tools,
  });
  const { message } = choices[0];
  messages.push(message);
  for (const call of message.tool_calls ?? [])
    messages.push({ role: 'tool', tool_call_id: call.id, content: calculate(argumentsOf(call)) });
  if (message.tool_calls?.length) continue;
  writeFileSync(process.env.GRADUS_ANSWER, message.content ?? '');
  break;
}
