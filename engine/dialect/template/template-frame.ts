import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import type { ChatMessage, ToolDescription } from '../contract.ts';
import type { Guard } from '../guard.ts';
import type { ChatTemplate } from './chat-template.ts';
import { pythonJsonOf } from './python-json.ts';

const CALL = 'gradus_call_mark';
const RESULT = 'gradus result mark';
const SAID = 'gradus answer mark';

/**
 * Prompts and observations as a chat template frames them. An observation is what the template writes between the
 * end of the turn that called and the opening of the next one, in a fixed conversation: a template may strip or add
 * things in the turns themselves (thoughts, above all), which have been sampled already and stay as they are.
 */
export class TemplateFrame {
  private readonly template: ChatTemplate;
  private readonly guard: Guard;
  private readonly tools: readonly ToolDescription[];
  private readonly turnEnds: readonly string[];
  private readonly variables: Readonly<Record<string, Json>>;
  private readonly argumentsAsText: boolean;
  /** Of two calls, once it was asked for. */
  private between: string | null | undefined;

  constructor(
    template: ChatTemplate,
    guard: Guard,
    tools: readonly ToolDescription[],
    turnEnds: readonly string[],
    variables: Readonly<Record<string, Json>>,
    /** For templates that write the arguments of a call as the text that they are in OpenAI's API. */
    { argumentsAsText = false } = {},
  ) {
    this.template = template;
    this.guard = guard;
    this.tools = tools;
    this.turnEnds = turnEnds;
    this.variables = variables;
    this.argumentsAsText = argumentsAsText;
  }

  promptText(messages: readonly ChatMessage[]): string {
    return this.render(messages.map((message) => this.shielded(message)));
  }

  promptTokens(messages: readonly ChatMessage[]): number[] {
    return this.guard.encode(this.promptText(messages));
  }

  observationTokens(text: string): number[] {
    return this.guard.encode(this.observationText(this.guard.shield(text)));
  }

  /**
   * Throws GradusError('policy', 'chat-template') unless what the template writes between two turns is one piece that
   * holds the tool's words and depends on nothing that went before.
   */
  assertSplits(): void {
    const short = this.observationText(RESULT);
    const long = this.observationText(RESULT, [...called('earlier'), result('an earlier result')]);
    if (short.split(RESULT).length !== 2) throw cannotSplit('leaves out what a tool said, or says it twice');
    if (short !== long) throw cannotSplit('frames a result by what went before it');
  }

  /** Whether a turn of the policy begins inside an open `<think>`. */
  get opensThought(): boolean {
    return /<think>\s*$/u.test(this.render([{ role: 'user', content: 'task' }]));
  }

  /** What lies between the end token of a turn and the next turn when a user says `content` (shielded) in between. */
  messageAfterTurn(content: string): string {
    const message: ChatMessage = { role: 'assistant', content: SAID };
    const text = this.render([{ role: 'user', content: 'task' }, message, { role: 'user', content }]);
    return this.afterTurn(text, SAID, 'answers');
  }

  /** What the template writes between this tag and the name of the tool that a turn calls. Throws as `assertSplits` does. */
  betweenTagAndCall(tag: string): string {
    const text = this.render([{ role: 'user', content: 'task' }, ...called(CALL), result(RESULT)]);
    const call = text.indexOf(CALL);
    const begins = text.lastIndexOf(tag, call);
    if (begins < 0) throw cannotSplit(`writes no ${tag}`);
    return text.slice(begins + tag.length, call);
  }

  /**
   * What the template writes between the end of a call and the beginning of the next one of the same turn, which these tell;
   * `otherwise` where it writes no turn with two. Throws GradusError('environment', 'demonstration') where nothing is given for
   * that.
   */
  betweenCalls(closes: string, opens: string, otherwise?: string): string {
    const between = this.twoCalls;
    if (between !== null) {
      const [from, to] = [between.lastIndexOf(closes), between.lastIndexOf(opens)];
      if (from >= 0 && from + closes.length <= to) return between.slice(from + closes.length, to);
    }
    if (otherwise !== undefined) return otherwise;
    throw new GradusError(
      'environment',
      'demonstration',
      "The checkpoint's chat template writes no turn with two calls: write a turn for each call, or fix chat_template in its tokenizer_config.json.",
    );
  }

  /** Whether the template writes the id of a call. */
  get namesCalls(): boolean {
    return this.twoCalls?.includes(callId(0)) === true;
  }

  /** What stands between the names of the two calls of a turn; null where the template writes no such turn. */
  private get twoCalls(): string | null {
    if (this.between !== undefined) return this.between;
    const results = [0, 1].map((i) => ({ ...result(RESULT), tool_call_id: callId(i) }));
    let text = '';
    try {
      text = this.render([{ role: 'user', content: 'task' }, ...called(CALL, 2), ...results]);
    } catch (error) {
      if (!(error instanceof GradusError)) throw error;
    }
    const parts = text.split(CALL);
    return (this.between = parts.length === 3 ? parts[1]! : null);
  }

  /**
   * What lies between the end token of a turn and the next turn when these messages come in between. `ids`: of the turn's
   * calls, for templates that have results name them; a call without one is known by its place.
   */
  messageTokens(messages: readonly ChatMessage[], ids: readonly string[] = []): number[] {
    const results = messages.findIndex(({ role }) => role !== 'tool');
    const calls = results < 0 ? messages.length : results;
    const said = messages.map((message, i) => ({
      ...this.shielded(message),
      ...(i < calls && { tool_call_id: ids[i] ?? callId(i) }),
    }));
    const after = (turn: ChatMessage): string =>
      this.render([{ role: 'user', content: 'task' }, turn, ...said]);
    const text = calls === 0 ? after({ role: 'assistant', content: SAID }) : this.afterCalls(calls, after);
    return this.guard.encode(
      this.afterTurn(text, calls === 0 ? SAID : CALL, calls === 0 ? 'answers' : 'calls'),
    );
  }

  /** Templates that write one call a turn (Llama's) still write any number of results one after the other. */
  private afterCalls(calls: number, render: (turn: ChatMessage) => string): string {
    try {
      return render(called(CALL, calls)[0]!);
    } catch (error) {
      if (calls === 1 || !(error instanceof GradusError)) throw error;
      return render(called(CALL, 1)[0]!);
    }
  }

  /** Nothing that a message says may spell a special token. */
  private shielded({ reasoning_content: thought, tool_calls: calls, ...message }: ChatMessage): ChatMessage {
    const shield = (json: Json): Json => {
      if (typeof json === 'string') return this.guard.shield(json);
      if (typeof json !== 'object' || json === null) return json;
      if (Array.isArray(json)) return json.map(shield);
      return Object.fromEntries(
        Object.entries(json).map(([key, value]) => [this.guard.shield(key), shield(value)]),
      );
    };
    return {
      ...message,
      content: this.guard.shield(message.content),
      ...(thought !== undefined && { reasoning_content: this.guard.shield(thought) }),
      ...(calls && {
        tool_calls: calls.map((call) => ({
          ...call,
          function: {
            name: this.guard.shield(call.function.name),
            arguments: shield(call.function.arguments),
          },
        })),
      }),
    };
  }

  private observationText(content: string, before: readonly ChatMessage[] = []): string {
    const text = this.render([
      { role: 'user', content: 'task' },
      ...before,
      ...called(CALL),
      result(content),
    ]);
    return this.afterTurn(text, CALL, 'calls');
  }

  /** What follows the end of the turn that has this mark in it. */
  private afterTurn(text: string, mark: string, does: 'calls' | 'answers'): string {
    const turn = text.indexOf(mark);
    if (turn < 0) throw cannotSplit(does === 'calls' ? 'leaves out tool calls' : 'leaves out answers');
    const ends = this.turnEnds.flatMap((token) => {
      const at = text.indexOf(token, turn);
      return at < 0 ? [] : [at + token.length];
    });
    if (ends.length === 0)
      throw cannotSplit(`ends a turn that ${does} with none of ${this.turnEnds.join(', ')}`);
    return text.slice(Math.min(...ends));
  }

  private render(messages: readonly ChatMessage[]): string {
    return this.template.render({
      messages: this.argumentsAsText ? messages.map(withTextArguments) : messages,
      tools: this.tools,
      addGenerationPrompt: true,
      variables: this.variables,
    });
  }
}

const withTextArguments = ({ tool_calls: calls, ...message }: ChatMessage): ChatMessage => ({
  ...message,
  ...(calls && {
    tool_calls: calls.map((call) => ({
      ...call,
      function: { ...call.function, arguments: pythonJsonOf(call.function.arguments) },
    })),
  }),
});

/** The id of a call that has none, by its place in its turn. */
export const callId = (number: number): string => `call${String(number).padStart(5, '0')}`;

const called = (name: string, calls = 1): ChatMessage[] => [
  {
    role: 'assistant',
    content: '',
    tool_calls: Array.from({ length: calls }, (_, i) => ({
      type: 'function',
      id: callId(i),
      function: { name, arguments: {} },
    })),
  },
];

const result = (content: string): ChatMessage => ({ role: 'tool', content, tool_call_id: callId(0) });

function cannotSplit(why: string): GradusError {
  return new GradusError(
    'policy',
    'chat-template',
    `The checkpoint's chat template ${why}, so tool results cannot be appended to sampled turns: set model.dialect to search-r1 or retool, which do not need it, or fix chat_template in its tokenizer_config.json.`,
  );
}
