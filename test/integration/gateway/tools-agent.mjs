import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import OpenAI from 'openai';

// An agent that works with the tools of its environment, by MCP: it asks the policy, sends a letter, packs as the policy said,
// and asks again. While the file HOLD is there it waits between its calls, where as many as the file says came that far before.

const { GRADUS_TASK, GRADUS_ANSWER, GRADUS_TOOLS_URL, OPENAI_MODEL, HOLD } = process.env;
const mcp = new Client({ name: 'tools-agent', version: '1' });
await mcp.connect(new StreamableHTTPClientTransport(new URL(GRADUS_TOOLS_URL)));
const { tools } = await mcp.listTools();
const described = tools.map(({ name, description, inputSchema }) => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
}));
const openai = new OpenAI();

async function call(name, given) {
  const { content, isError } = await mcp.callTool({ name, arguments: given });
  if (isError) throw new Error(content[0].text);
  return content[0].text;
}

const messages = [{ role: 'user', content: GRADUS_TASK }];
async function ask() {
  const asked = { model: OPENAI_MODEL, messages, tools: described };
  const { message } = (await openai.chat.completions.create(asked)).choices[0];
  messages.push(message);
  return message.content ?? '';
}

const first = await ask();
await call('send', { to: 'the house' });
await call('pack', { thing: 'cup' });
if (HOLD && existsSync(HOLD)) {
  const earlier = readdirSync(path.dirname(HOLD)).filter((name) => name.startsWith('came.')).length;
  writeFileSync(path.join(path.dirname(HOLD), `came.${process.pid}`), '');
  if (earlier >= Number(readFileSync(HOLD, 'utf8'))) {
    writeFileSync(`${HOLD}.${process.pid}`, '');
    while (existsSync(HOLD)) await wait(50);
  }
}
// Equal calls are other calls.
for (let i = 0; i < first.length % 4; i++) await call('pack', { thing: 'cup' });
messages.push({ role: 'user', content: await call('pack', { thing: 'lid' }) });
const answer = await ask();
await mcp.close();
writeFileSync(GRADUS_ANSWER, answer);
