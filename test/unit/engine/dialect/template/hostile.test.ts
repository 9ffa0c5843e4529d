import { expect, test } from 'vitest';
import { ChatTemplate } from '../../../../../engine/dialect/template/chat-template.ts';

const twice = (times: number, start: string, step: string): string =>
  `{% set ns = namespace(x=${start}) %}{% for i in range(${times}) %}{% set ns.x = ${step} %}{% endfor %}`;
const BIG = twice(18, "'aa'", 'ns.x ~ ns.x');

/** Templates that would take hours, gigabytes, or both; and one that calls itself. */
const BOMBS: Record<string, string> = {
  'loops in loops': `${'{% for i in range(1000) %}'.repeat(6)}x${'{% endfor %}'.repeat(6)}`,
  'a range': '{% for i in range(1000000000) %}x{% endfor %}',
  'a range that nobody reads': '{{ range(100000000000) | length }}',
  'text that doubles': `${twice(60, "'a'", 'ns.x ~ ns.x')}{{ ns.x }}`,
  'lists that double': twice(60, '[1]', 'ns.x + ns.x'),
  'a join with a long separator': `${BIG}{{ range(100000) | join(ns.x) }}`,
  'indented JSON': `{{ [[1], [2]] | tojson(indent=1000000000) }}`,
  'a macro that calls itself': '{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}',
};

const render = (source: string): string =>
  new ChatTemplate(source).render({
    messages: [{ role: 'user', content: 'task' }],
    addGenerationPrompt: true,
  });

test.each(Object.entries(BOMBS))('%s: a template that does not come to an end is refused', (_, source) => {
  expect(() => render(source)).toThrow(/The checkpoint's chat template does not render the conversation/u);
});

test.each([
  ['too long', 'x'.repeat(200_001), 'has 200001 letters'],
  ['white space', ' '.repeat(190_000), 'white space in a row'],
  ['white space inside', `{{-${'\n'.repeat(190_000)}-}}`, 'white space in a row'],
  ['nested too deeply', '{% if a %}'.repeat(15_000), 'cannot be read'],
  ['an expression nested too deeply', `{{ ${'('.repeat(90_000)} }}`, 'cannot be read'],
])('a template that is %s is not read', (_, source, why) => {
  expect(() => render(source)).toThrow(why);
});

test('a long conversation is rendered, however often an ordinary template reads it', () => {
  const source = `{% for m in messages %}{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% else %}{{ m.content | trim | replace('<', '&lt;') }}{% endif %}{{ m | tojson }}{{ messages[loop.index0].content }}{% endfor %}`;
  const messages = Array.from({ length: 500 }, (_, i) => ({
    role: 'user' as const,
    content: `${i} <a>${'word '.repeat(1000)}`,
  }));
  const rendered = new ChatTemplate(source).render({ messages, addGenerationPrompt: true });
  expect(rendered.length).toBeGreaterThan(7e6);
});
