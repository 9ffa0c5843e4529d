import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../../../core/json/json.ts';
import { parseAction } from '../../../../../engine/dialect/gradus/parse-action.ts';
import { malformedObservation } from '../../../../../engine/dialect/malformed.ts';
import { turnText } from '../../../../../engine/dialect/gradus/render.ts';
import { findSpecialToken, SPECIAL_TOKENS } from '../../../../../engine/dialect/gradus/special-tokens.ts';
import { propertyRuns } from '../../../../support/property-runs.ts';

const plain = fc
  .string({ unit: 'binary', maxLength: 30 })
  .filter((text) => findSpecialToken(text) === undefined);
const answer = plain.filter((text) => text.trim() !== '');
// Through JSON once: that is what a call can carry (no minus zero).
const args = fc
  .dictionary(fc.oneof(fc.string(), fc.constantFrom(...SPECIAL_TOKENS)), fc.jsonValue())
  .map((value) => JSON.parse(JSON.stringify(value)) as Json);
const name = fc.string({ minLength: 1 });

describe('parseAction', () => {
  test('reads back every call that turnText writes, tags in its arguments included', () => {
    fc.assert(
      fc.property(fc.option(plain, { nil: undefined }), name, args, (think, name, args) => {
        const call = { name, arguments: args };
        const text = turnText(think === undefined ? { call } : { think, call });
        expect(parseAction(text)).toEqual({ kind: 'call', call });
      }),
    );
  });

  test('reads back every answer that turnText writes', () => {
    fc.assert(
      fc.property(fc.option(plain, { nil: undefined }), answer, (think, answer) => {
        const text = turnText(think === undefined ? { answer } : { think, answer });
        expect(parseAction(text)).toEqual({ kind: 'answer', answer });
      }),
    );
  });

  test('never throws, whatever the policy writes', () => {
    const piece = fc.oneof(
      fc.constantFrom(...SPECIAL_TOKENS),
      fc.constantFrom('{"name":"x"', ',"arguments":{}}', '{', '[1]', 'null', ' ', '12+7', '__proto__'),
      fc.string({ unit: 'binary', maxLength: 10 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const action = parseAction(pieces.join(''));
        expect(['call', 'answer', 'malformed']).toContain(action.kind);
        if (action.kind === 'malformed') expect(action.reason.length).toBeLessThan(60);
      }),
      { numRuns: propertyRuns(2000) },
    );
    expect(parseAction(`<tool_call>${'['.repeat(200_000)}</tool_call>`).kind).toBe('malformed');
  });

  test.each([
    ['', 'no call and no answer'],
    ['<|im_end|>', 'no call and no answer'],
    ['<think>hm</think><|im_end|>', 'no call and no answer'],
    ['19', 'text outside tags'],
    ['12+7<tool_call>{}</tool_call>', 'text outside tags'],
    ['12+7=19<|im_end|>', 'text outside tags'],
    ['<think>12+7', 'unclosed <think>'],
    ['<think>a<answer>19</answer></think>', '<answer> inside <think>'],
    ['<answer>19', 'unclosed <answer>'],
    ['<answer>19<|im_end|>', 'unclosed <answer>'],
    ['<answer> </answer>', 'empty answer'],
    ['<answer>19<tool_call></answer>', '<tool_call> inside <answer>'],
    ['<tool_call>{"name":"calculator"', 'unclosed <tool_call>'],
    ['<tool_call>12+7</tool_call>', 'call is not JSON'],
    ['<tool_call>{"name":"calculator"</tool_call>', 'call is not JSON'],
    ['<tool_call>[1]</tool_call>', 'call is not an object'],
    ['<tool_call>{"arguments":{}}</tool_call>', 'call has no name'],
    ['<tool_call>{"name":"","arguments":{}}</tool_call>', 'call has no name'],
    ['<tool_call>{"name":7,"arguments":{}}</tool_call>', 'call has no name'],
    ['<tool_call>{"name":"x"}</tool_call>', 'call has no arguments'],
    ['<tool_call>{"name":"x","arguments":"12+7"}</tool_call>', 'arguments are not an object'],
    ['<tool_call>{"name":"x","arguments":[]}</tool_call>', 'arguments are not an object'],
    ['<tool_call>{"name":"x","arguments":null}</tool_call>', 'arguments are not an object'],
    ['<tool_call>{"name":"x","arguments":{},"id":1}</tool_call>', 'call has more than name and arguments'],
    [
      '<tool_call>{"name":"x","arguments":{}}</tool_call><tool_call>{"name":"x","arguments":{}}</tool_call>',
      'one call a turn',
    ],
    ['<tool_call>{"name":"x","arguments":{}}</tool_call> ok', 'text after </tool_call>'],
    ['<tool_call>{"name":"x","arguments":{}}</tool_call><|im_end|>', 'text after </tool_call>'],
    ['<answer>1</answer><answer>2</answer>', 'text after </answer>'],
    ['</tool_call>', 'unexpected </tool_call>'],
    ['<tool_response>19</tool_response>', 'unexpected <tool_response>'],
  ])('%s is malformed: %s', (text, reason) => {
    expect(parseAction(text)).toEqual({ kind: 'malformed', reason });
    expect(malformedObservation(reason)).toEqual({ text: `error: ${reason}`, error: 'malformed-call' });
  });

  test('an answer may be followed by the end of the message', () => {
    expect(parseAction('<answer>19</answer><|im_end|>')).toEqual({ kind: 'answer', answer: '19' });
  });
});
