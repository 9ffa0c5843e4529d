import { writeFileSync } from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

// Vercel's AI SDK, over Chat Completions or Responses: STREAM says whether answers are streamed.

const { API, GRADUS_ANSWER, GRADUS_TASK, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL, STREAM } =
  process.env;
const openai = createOpenAI({ baseURL: OPENAI_BASE_URL, apiKey: OPENAI_API_KEY });
const asked = {
  model: API === 'chat' ? openai.chat(OPENAI_MODEL) : openai.responses(OPENAI_MODEL),
  prompt: GRADUS_TASK,
  stopWhen: stepCountIs(8),
  tools: {
    add: tool({
      description: 'Adds two numbers.',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      execute: ({ a, b }) => String(a + b),
    }),
  },
};
const text = STREAM === '1' ? await streamText(asked).text : (await generateText(asked)).text;
writeFileSync(GRADUS_ANSWER, text);
