export const PAD = '<|pad|>';
export const MESSAGE_START = '<|im_start|>';
export const MESSAGE_END = '<|im_end|>';

export const TAGS = {
  think: ['<think>', '</think>'],
  call: ['<tool_call>', '</tool_call>'],
  observation: ['<tool_response>', '</tool_response>'],
  answer: ['<answer>', '</answer>'],
} as const;

/** What a tokenizer for this dialect has as special tokens, in the order of their ids. */
export const SPECIAL_TOKENS: readonly string[] = [
  PAD,
  MESSAGE_START,
  MESSAGE_END,
  ...TAGS.think,
  ...TAGS.call,
  ...TAGS.observation,
  ...TAGS.answer,
];

/** The first special token in a text. */
export function findSpecialToken(text: string): string | undefined {
  let first: { token: string; at: number } | undefined;
  for (const token of SPECIAL_TOKENS) {
    const at = text.indexOf(token);
    if (at >= 0 && (first === undefined || at < first.at)) first = { token, at };
  }
  return first?.token;
}
