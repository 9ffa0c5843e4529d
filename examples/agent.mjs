import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import OpenAI from 'openai';

// An agent that knows nothing of Gradus: it works through a sum with OpenAI's SDK and a calculator of its own.
//
// Started as it is, it does the task of GRADUS_TASK, and leaves its answer in the file that GRADUS_ANSWER names. With a port,
// it serves: a task is posted to it, with the variables that it would have been started with.

const MOST_TURNS = 8;
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

async function solve(task, variables) {
  const client = new OpenAI({ baseURL: variables.OPENAI_BASE_URL, apiKey: variables.OPENAI_API_KEY });
  const messages = [{ role: 'user', content: task }];
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const asked = { model: variables.OPENAI_MODEL, messages, tools };
    const { message } = (await client.chat.completions.create(asked)).choices[0];
    if (!message.tool_calls?.length) return message.content ?? '';
    messages.push(message);
    for (const call of message.tool_calls)
      messages.push({ role: 'tool', tool_call_id: call.id, content: calculate(argumentsOf(call)) });
  }
  return '';
}

async function answer(request, response) {
  try {
    const { task, variables } = await json(request);
    response.end(JSON.stringify({ answer: await solve(task, variables) }));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
}

const port = process.argv[2];
if (port === undefined)
  writeFileSync(process.env.GRADUS_ANSWER, await solve(process.env.GRADUS_TASK, process.env));
else createServer((request, response) => void answer(request, response)).listen(Number(port), '127.0.0.1');
