import type { ToolCall } from '../../core/episode/episode.ts';
import type { Json } from '../../core/json/json.ts';
import type { RandomStream } from '../../core/random.ts';
import type { DemonstrationTurn } from '../../environments/contract/environment.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';

// Examples of action synthesis, in the shape in which data is given: messages, of which only the assistant's are trained.

/** A turn without its thought, and without what a tool said. */
export type Action = Pick<DemonstrationTurn, 'answer'> & { call?: ToolCall; calls?: ToolCall[] };

interface Solved {
  prompt: string;
  turns: readonly DemonstrationTurn[];
  observed: readonly (readonly string[])[];
  tools?: readonly ToolFacts[];
}

/** The question, and the first call; null where it is answered at once. */
export function firstActionOf(solved: Solved): object | null {
  const [first] = solved.turns;
  if (first!.answer !== undefined) return null;
  return withTools(solved, [asked(solved.prompt), written(first!)]);
}

/** The question, and all calls in order: what only a tool can say is left open, since nothing has been carried out. */
export function planOf(solved: Solved): object | null {
  const known = new Set(wordsIn(solved.prompt));
  const steps = solved.turns.flatMap(callsOf).map(({ name, arguments: given }) => {
    const open = mapTexts(given, (text) =>
      text.replaceAll(WORD, (word) => (known.has(word.toLowerCase()) ? word : '?')),
    );
    return textOf({ call: { name, arguments: open } });
  });
  if (steps.length === 0) return null;
  const plan = [...steps, 'answer'].map((step, i) => `${i + 1}. ${step}`).join('\n');
  return withTools(solved, [
    asked(`${solved.prompt}\n\nSay the plan, and call nothing.`),
    { role: 'assistant', content: plan },
  ]);
}

/** A step and its alternatives, shuffled; the choice, and what came of it up to the answer. What was done before is not trained. */
export function choiceOf(
  solved: Solved,
  step: number,
  others: readonly Action[],
  random: RandomStream,
): object {
  const { prompt, turns, observed } = solved;
  const real = turns[step]!;
  const options = random.shuffle([real, ...others]);
  const listed = options.map((option, i) => `${i + 1}. ${textOf(option)}`).join('\n');
  const choice = [`Option ${options.indexOf(real) + 1}.`, ...(real.think ? [real.think] : [])].join(' ');
  const said = turns.flatMap((turn, i) => [
    i < step ? { ...written(turn), weight: 0 } : written(i === step ? { ...turn, think: choice } : turn),
    ...observed[i]!.map((content) => ({ role: 'tool', content })),
  ]);
  return withTools(solved, [asked(`${prompt}\n\nOptions for turn ${step + 1}:\n${listed}`), ...said]);
}

const asked = (content: string): object => ({ role: 'user', content });

function written(turn: DemonstrationTurn): object {
  const { think, answer = '' } = turn;
  const calls = callsOf(turn);
  return {
    role: 'assistant',
    content: answer,
    ...(think && { reasoning_content: think }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ name, arguments: given }) => ({
        type: 'function',
        function: { name, arguments: JSON.stringify(given) },
      })),
    }),
  };
}

/** Tools are those of the environment where a task has none of its own. */
const withTools = ({ tools }: Solved, messages: object[]): object => ({
  messages,
  ...(tools && {
    tools: tools.map(({ described: { name, description, parameters } }) => ({
      type: 'function',
      function: { name, description, parameters },
    })),
  }),
});

const callsOf = ({ call, calls }: DemonstrationTurn): readonly ToolCall[] => calls ?? (call ? [call] : []);

/** An action in a list of them, in one line. */
const textOf = (turn: DemonstrationTurn): string =>
  turn.answer === undefined
    ? callsOf(turn)
        .map(({ name, arguments: given }) => `${name} ${JSON.stringify(given)}`)
        .join(' and ')
    : `answer ${JSON.stringify(turn.answer)}`;

/** A number with a fraction is one word: its digits alone may be in a question that does not have it. */
const WORD = /\p{N}+(?:[.,]\p{N}+)+|[\p{L}\p{N}]+/gu;
const wordsIn = (text: string): string[] => text.toLowerCase().match(WORD) ?? [];

/** Numbers are texts here, too. */
function mapTexts(json: Json, change: (text: string) => string): Json {
  if (typeof json === 'string') return change(json);
  if (typeof json === 'number') return change(String(json)) === String(json) ? json : change(String(json));
  if (Array.isArray(json)) return json.map((item) => mapTexts(item, change));
  if (json === null || typeof json !== 'object') return json;
  return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, mapTexts(value, change)]));
}
