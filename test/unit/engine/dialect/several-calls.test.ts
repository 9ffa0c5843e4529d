import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../../core/json/json.ts';
import type { DialectName } from '../../../../core/names.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { DIALECTS } from './every-dialect.ts';
import { configOf, renderingsOf, tokenizerOf } from './fixtures.ts';
import type { Family } from './fixtures.ts';

// A turn with several calls, where a spec allows it: against what Python's `transformers` renders, token by token.

interface Spoken {
  name: DialectName;
  family: Family;
  template: string;
  /** What the template opens a turn with. */
  opening: string;
}

const spoken: Spoken[] = [
  { name: 'hermes', family: 'qwen', template: 'qwen2.5-like', opening: '<|im_start|>assistant\n' },
  { name: 'hermes', family: 'qwen', template: 'qwen3-like', opening: '<|im_start|>assistant\n' },
  { name: 'llama3', family: 'llama', template: 'llama3.2-like', opening: '>assistant<|end_header_id|>\n\n' },
  {
    name: 'pythonic',
    family: 'pythonic',
    template: 'pythonic-like',
    opening: '>assistant<|end_header_id|>\n\n',
  },
  { name: 'deepseek', family: 'deepseek', template: 'deepseek-r1-like', opening: '<｜Assistant｜>' },
  { name: 'deepseek', family: 'deepseek', template: 'deepseek-v3.1-like', opening: '</think>' },
  { name: 'mistral', family: 'mistral', template: 'mistral-args-like', opening: '[/INST]' },
];

const now = { name: 'now', arguments: {} };
const sum = { name: 'calculator', arguments: { expression: '1+1' } };
const results = ['noon', '2'].map((content) => ({ role: 'tool' as const, content }));

describe.each(spoken)('$name, as $template writes it', ({ name, family, template, opening }) => {
  const tokenizer = tokenizerOf(family);
  const config: { [key: string]: Json } = { ...configOf(family, template), gradus_dialect: { name } };
  const dialect = openDialect(tokenizer, config, []);
  const golden = renderingsOf(family).cases.find(
    (one) => one.template === template && one.name === 'two results' && one.add_generation_prompt,
  )!;
  const behind = golden.text!.slice(golden.text!.indexOf(opening) + opening.length);

  test('two calls and their results are the tokens of its template', () => {
    const between = dialect.messageTokens(results, behind);
    const turn = tokenizer.encode(behind.slice(0, behind.length - tokenizer.decode(between).length));
    expect([...turn, ...between]).toEqual(golden.ids!.slice(-turn.length - between.length));
    expect(tokenizer.decode([...turn, ...between])).toBe(behind);
    const text = tokenizer.decode(turn);
    expect(dialect.stopTokens).toContain(turn.at(-1));
    expect(dialect.parse(text, 2)).toEqual({ kind: 'calls', calls: [now, sum] });
    expect(dialect.parse(text, 5)).toEqual({ kind: 'calls', calls: [now, sum] });
  });

  test('two calls that are written for it are the tokens of its template, and what follows them', () => {
    const between = dialect.messageTokens(results, behind);
    // R1's prompts open a thought, which a turn closes and its template leaves out of what was said.
    const thought = template === 'deepseek-r1-like' ? tokenizer.encode('\n</think>\n\n') : [];
    const turn = dialect.turnTokens({ calls: [now, sum] });
    expect(turn.slice(0, thought.length)).toEqual(thought);
    const written = [...turn.slice(thought.length), ...between];
    expect(written).toEqual(golden.ids!.slice(-written.length));
    expect(tokenizer.decode(written)).toBe(behind);
  });

  test('more calls than it may make are told so, and make none', () => {
    const turn = behind.slice(
      0,
      behind.length - tokenizer.decode(dialect.messageTokens(results, behind)).length,
    );
    expect(dialect.parse(turn)).toEqual({ kind: 'malformed', reason: 'one call a turn' });
    expect(dialect.parse(turn, 1)).toEqual({ kind: 'malformed', reason: 'one call a turn' });
    const three = threeCalls[name]!(turn);
    expect(dialect.parse(three, 2)).toEqual({ kind: 'malformed', reason: 'at most 2 calls a turn' });
    expect(dialect.parse(three, 3)).toMatchObject({ kind: 'calls', calls: [now, sum, sum] });
  });
});

/** The last call once more. */
const threeCalls: Record<string, (turn: string) => string> = {
  hermes: (turn) => turn.replace(/\n<tool_call>\n\{"name": "calculator".*?<\/tool_call>/su, '$&$&'),
  llama3: (turn) => turn.replace(/; \{"name": "calculator".*\}(?=<)/u, '$&$&'),
  pythonic: (turn) => turn.replace(/, calculator\(.*\)(?=\])/u, '$&$&'),
  deepseek: (turn) =>
    turn.replace(
      /<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?calculator.*?<｜tool▁call▁end｜>/su,
      '$&$&',
    ),
  mistral: (turn) => turn.replace(/\[TOOL_CALLS\]calculator\[ARGS\]\{.*?\}/u, '$&$&'),
};

test('mistral names the calls of a turn by their ids where its template does, as the results that follow', () => {
  const [dialect, tokenizer] = DIALECTS['mistral']!;
  const tool_calls = [now, sum].map((call, i) => ({
    type: 'function' as const,
    id: `call0000${i}`,
    function: call,
  }));
  const rendered = dialect.promptTokens([
    { role: 'user', content: 'Both.' },
    { role: 'assistant', content: '', tool_calls },
    ...results.map((one, i) => ({ ...one, tool_call_id: `call0000${i}` })),
  ]);
  const turn = dialect.turnTokens({ calls: [now, sum] });
  const text = tokenizer.decode(turn);
  const written = [...turn, ...dialect.messageTokens(results, text)];
  expect(written).toEqual(rendered.slice(-written.length));
  expect(text).toContain('"id": "call00001"');
});

test('llama3 writes a semicolon between two calls where its template writes no turn with two', () => {
  const [dialect] = DIALECTS['llama3']!;
  expect(dialect.turnText({ calls: [now, sum] })).toBe(
    '{"name": "now", "parameters": {}}; {"name": "calculator", "parameters": {"expression": "1+1"}}<|eot_id|>',
  );
});

test.each(['gradus', 'search-r1', 'retool'])(
  '%s refuses to write several calls, and says what to do',
  (name) => {
    const [dialect] = DIALECTS[name]!;
    const turn = { calls: [sum, sum] };
    expect(dialect.canWrite(turn)).toBe(false);
    expect(() => dialect.turnText(turn)).toThrow(
      `A turn of ${name} ends with its call, and one with 2 calls cannot be written: write a turn for each call, or take hermes, llama3, pythonic, mistral, deepseek as model.dialect.`,
    );
  },
);

test('a dialect of the project refuses them unless it writes them', () => {
  const [dialect] = DIALECTS['own']!;
  expect(() => dialect.turnText({ calls: [sum, sum] })).toThrow('plain-calls writes one call a turn');
});

const hermes = (...contents: string[]) =>
  contents.map((content) => `<tool_call>\n${content}\n</tool_call>`).join('\n') + '<|im_end|>';
const good = '{"name": "now", "arguments": {}}';
const llama = '{"name": "now", "parameters": {}}';

test.each<[string, string, string]>([
  ['hermes', hermes(good, '{"name": 3}'), 'call has no name'],
  ['hermes', hermes(good, `[${good}]`), 'call is a list and not an object'],
  ['hermes', `${hermes(good).slice(0, -'<|im_end|>'.length)} so\n${hermes(good)}`, 'text after </tool_call>'],
  [
    'hermes',
    `<tool_response>1</tool_response>${hermes(good, good)}`,
    '<tool_response> is for tools to write',
  ],
  ['hermes', `</tool_call>${hermes(good, good)}`, 'unexpected </tool_call>'],
  [
    'hermes',
    `${hermes(good).slice(0, -'<|im_end|>'.length)}<tool_call>${good}<|im_end|>`,
    'unclosed <tool_call>',
  ],
  ['hermes', '<|im_end|>', 'no call and no answer'],
  ['llama3', `${llama}; {"name": 3}`, 'call has no name'],
  ['llama3', `${llama}; {"name"`, 'call is not JSON'],
  ['llama3', `${llama} and ${llama}`, 'text after the call'],
  ['llama3', `[${llama}, 3]`, 'text after the call'],
  ['llama3', '<|python_tag|>[]', 'no call and no answer'],
])('%s: what is wrong with one of several calls is told: %s', (name, text, reason) => {
  expect(DIALECTS[name]![0].parse(text, 3)).toEqual({ kind: 'malformed', reason });
});

test.each(['gradus', 'search-r1', 'retool'])('%s ends its turn with a call, whatever it may make', (name) => {
  const [dialect] = DIALECTS[name]!;
  const call = '<tool_call>{"name":"now","arguments":{}}</tool_call><search>x</search><code>x</code>';
  expect(dialect.parse(call + call, 3)).toEqual(dialect.parse(call + call));
});

test.each(Object.keys(DIALECTS))(
  '%s reads what has one call or none alike, however many it may make',
  (name) => {
    const [dialect] = DIALECTS[name]!;
    const piece = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.constantFrom(
        hermes(good),
        good,
        llama,
        '[now()]',
        '[TOOL_CALLS]',
        `[${good}]`,
        '<think>',
        '</think>',
        '; ',
      ),
      fc.constantFrom(
        '<tool_call>',
        '</tool_call>',
        '<tool_response>',
        '<|python_tag|>',
        '<answer>4</answer>',
      ),
      fc.constantFrom(
        '<｜tool▁calls▁begin｜>',
        '<｜tool▁calls▁end｜>',
        '<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const text = pieces.join('');
        const one = dialect.parse(text);
        const several = dialect.parse(text, 4);
        if (one.kind !== 'malformed') expect(several).toEqual(one);
        expect(one.kind).not.toBe('calls');
        if (several.kind === 'calls') expect(one.kind).toBe('malformed');
      }),
    );
  },
);
