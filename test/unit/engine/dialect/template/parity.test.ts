import { describe, expect, test } from 'vitest';
import { ChatTemplate } from '../../../../../engine/dialect/template/chat-template.ts';
import { families, renderingsOf, templateOf, tokenizerOf } from '../fixtures.ts';

describe.each(families)('conversations of the %s family', (family) => {
  const tokenizer = tokenizerOf(family);
  const { date, named, tools, cases } = renderingsOf(family);

  test('are there to be compared', () => expect(cases.length).toBeGreaterThan(40));

  test.each(cases.map((one) => [one.template, one.name, one.tools.length, one] as const))(
    '%s: "%s" with %i tools is what Python renders and tokenizes, to the byte',
    (_, __, ___, one) => {
      const template = new ChatTemplate(templateOf(one.template), named, date);
      const render = (): string =>
        template.render({
          messages: one.messages,
          tools: one.tools.map((name) => tools[name]!.function),
          addGenerationPrompt: one.add_generation_prompt,
          variables: one.variables,
        });
      if (one.error !== undefined) {
        expect(render).toThrow(one.error);
        return;
      }
      expect(render()).toBe(one.text);
      expect(tokenizer.encode(render())).toEqual(one.ids);
    },
  );
});
