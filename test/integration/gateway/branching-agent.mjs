import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

// An agent that knows nothing of Gradus, and whose turns are a tree: two helpers work at the same time, one of them asks for two
// answers to one question, and what was said is cut down to a note before the last turn. It is held before that turn by a
// file with its task, at the path that it is started with, until the file is gone.

const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, GRADUS_TASK, GRADUS_ANSWER } = process.env;

async function ask(messages) {
  const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPENAI_API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: OPENAI_MODEL, messages, max_tokens: 16 }),
  });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()).choices[0].message;
}

const user = (content) => ({ role: 'user', content });
const system = { role: 'system', content: 'Help.' };

async function helper(question) {
  const asked = [system, user(question)];
  const said = await ask(asked);
  const more = [...asked, said, user('And now?')];
  const answers = [await ask(more), await ask(more)];
  return answers.map(({ content }) => content ?? '').join(' ');
}

const notes = await Promise.all([helper(`first: ${GRADUS_TASK}`), ask([user('second')])]);
const [, , gate] = process.argv;
if (gate !== undefined && existsSync(gate) && readFileSync(gate, 'utf8') === GRADUS_TASK)
  while (existsSync(gate)) await delay(20);
const { content } = await ask([user(`${GRADUS_TASK} ${notes[0].length}`)]);
writeFileSync(GRADUS_ANSWER, content ?? '');
