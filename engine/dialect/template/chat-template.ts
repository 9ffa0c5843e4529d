import { Environment, Template } from '@huggingface/jinja';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { interruptedAfter } from '../../in-time.ts';
import type { ChatMessage, ToolDescription } from '../contract.ts';
import { markPrints, MOST_ITEMS, PythonInterpreter } from './python-interpreter.ts';
import { strftime } from './strftime.ts';

export interface Rendering {
  messages: readonly ChatMessage[];
  /** Empty for none. */
  tools?: readonly ToolDescription[];
  /** Opens the assistant's next turn. */
  addGenerationPrompt: boolean;
  /** What else the template reads, such as `enable_thinking`. */
  variables?: Readonly<Record<string, Json>>;
}

/** What `strftime_now` tells where nobody says a day: a prompt is a function of the run, not of the clock. */
const DEFAULT_DATE = '2024-07-26';

/** Of a template; the longest that models come with have some 20,000. */
const MOST_LETTERS = 200_000;

/** White space in a row: the engine's reader takes the square of that. */
const MOST_SPACE = 1000;

/** A checkpoint's chat template, rendered to the byte as `apply_chat_template` of Python's `transformers` does. */
export class ChatTemplate {
  readonly source: string;
  private readonly program: Template['parsed'];
  private readonly specialTokens: Readonly<Record<string, string>>;
  private readonly date: string;

  /**
   * `specialTokens`: what `tokenizer_config.json` names, such as `bos_token`. `date`: the day that `strftime_now`
   * tells, `YYYY-MM-DD`. Throws GradusError('policy', 'chat-template') for a template that cannot be read.
   */
  constructor(source: string, specialTokens: Readonly<Record<string, string>> = {}, date = DEFAULT_DATE) {
    this.source = source;
    this.specialTokens = specialTokens;
    this.date = date;
    if (source.length > MOST_LETTERS) {
      throw refused(`has ${source.length} letters, and ${MOST_LETTERS} are the most that is read`);
    }
    if (longestSpace(source) > MOST_SPACE) {
      throw refused(`has more than ${MOST_SPACE} characters of white space in a row`);
    }
    try {
      this.program = new Template(source).parsed;
      markPrints(this.program);
    } catch (cause) {
      throw refused(`cannot be read (${messageOf(cause)})`, cause);
    }
  }

  /**
   * Throws GradusError('policy', 'chat-template') with the template's own words where it refuses the conversation, and
   * where it does not come to an end (`interruptedAfter`).
   */
  render({ messages, tools = [], addGenerationPrompt, variables = {} }: Rendering): string {
    const scope = new Environment();
    const globals: Record<string, unknown> = {
      true: true,
      false: false,
      none: null,
      True: true,
      False: false,
      None: null,
      range: pythonRange,
      raise_exception: (message: string) => {
        throw new Error(message);
      },
      strftime_now: (format: string) => strftime(this.date, format),
      ...this.specialTokens,
      ...variables,
      messages,
      tools:
        tools.length === 0
          ? null
          : tools.map(({ name, description, parameters }) => ({
              type: 'function',
              function: { name, description, parameters },
            })),
      documents: null,
      add_generation_prompt: addGenerationPrompt,
    };
    for (const [name, value] of Object.entries(globals)) scope.set(name, value);
    try {
      return interruptedAfter(() => new PythonInterpreter(scope).run(this.program).value as string);
    } catch (cause) {
      throw refused(`does not render the conversation: ${messageOf(cause)}`, cause);
    }
  }
}

function pythonRange(first: number, second?: number, step = 1): number[] {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  if (step === 0) throw new Error('range needs a step');
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > MOST_ITEMS) throw new Error(`it asks for a range of ${length} numbers`);
  return Array.from({ length }, (_, i) => start + i * step);
}

/** Of the runs of white space. */
function longestSpace(text: string): number {
  let longest = 0;
  let end = 0;
  for (const { index, 0: word } of text.matchAll(/\S+/gu)) {
    longest = Math.max(longest, index - end);
    end = index + word.length;
  }
  return Math.max(longest, text.length - end);
}

function refused(why: string, cause?: unknown): GradusError {
  return new GradusError(
    'policy',
    'chat-template',
    `The checkpoint's chat template ${why}. Fix chat_template in its tokenizer_config.json, or choose another model.dialect.`,
    { cause },
  );
}
