import { expect, test } from 'vitest';
import { ChatTemplate } from '../../../../../engine/dialect/template/chat-template.ts';

const twice = (times: number, start: string, step: string): string =>
  `{% set ns = namespace(x=${start}, y='b') %}{% for i in range(${times}) %}{% set ns.x = ${step} %}{% endfor %}`;
const BIG = twice(18, "'aa'", 'ns.x ~ ns.x');
const LIST = twice(17, '[1, 2]', 'ns.x + ns.x');
const NESTED = twice(60, "['a']", '[ns.x, ns.x]');

/** Templates that would take hours, gigabytes, or both; and one that calls itself. */
const BOMBS: Record<string, string> = {
  'a range': '{% for i in range(1000000000) %}x{% endfor %}',
  'a range that nobody reads': '{{ range(100000000000) | length }}',
  'loops in loops': `${'{% for i in range(1000) %}'.repeat(6)}x${'{% endfor %}'.repeat(6)}`,
  'empty loops': `{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}`,
  'a loop with a test': `{% for i in range(9000) %}{% for j in range(9000) if j > 99999 %}{% endfor %}{% endfor %}`,
  'text that doubles': `${twice(60, "'a'", 'ns.x ~ ns.x')}{{ ns.x }}`,
  'text that doubles and is upper case': twice(60, "'a'", '(ns.x ~ ns.x) | upper'),
  'lists that double': twice(60, '[1]', 'ns.x + ns.x'),
  'a replacement of all letters by a text': `${BIG}{{ ns.x | replace('a', ns.x) }}`,
  'the method of it, under another name': `${BIG}{% set f = ns.x.replace %}{{ f('a', ns.x) }}`,
  'the method of it, by its index': `${BIG}{{ ns.x['replace']('a', ns.x) }}`,
  'the filter of it, around a block': `${BIG}{% filter replace('a', ns.x) %}{{ ns.x }}{% endfilter %}`,
  'the filter of it, with its arguments in a list': `${BIG}{{ ns.x | replace(*['a', ns.x]) }}`,
  'a call block of it': `${BIG}{% set f = ns.x.replace %}{% call f('a', ns.x) %}{% endcall %}`,
  'a join with a long separator': `${BIG}{{ range(100000) | join(ns.x) }}`,
  'a join of letters': `${BIG}{{ ns.x | join(ns.x) }}`,
  'an indentation': `{{ '\\na\\na' | indent(1000000000) }}`,
  'indented JSON': `{{ [[1], [2]] | tojson(indent=100000000) }}`,
  'JSON with a long separator': `${BIG}{{ range(9000) | tojson(separators=(ns.x, ns.x)) }}`,
  'JSON of a list that holds itself twice, often': `${NESTED}{{ ns.x | tojson }}`,
  'text of it': `${NESTED}{{ ns.x | string }}`,
  'text with it': `${NESTED}{{ 'a' ~ ns.x }}`,
  'a sum with it': `${NESTED}{{ 'a' + ns.x }}`,
  'a comparison with it': `${NESTED}{{ 'a' == ns.x }}`,
  'a join of it': `${NESTED}{{ ns.x | join }}`,
  'a namespace that holds it': `${NESTED}{{ namespace(y=ns.x) }}`,
  'long texts that are sorted': `${BIG}${twice(17, '[1]', 'ns.x').replace('[1]', '[ns.x]')}{% set l = [ns.x] %}{% set m = namespace(l=[ns.x]) %}{% for i in range(16) %}{% set m.l = m.l + m.l %}{% endfor %}{{ m.l | sort | length }}`,
  'looking for a long text in a long one': `${BIG}{% for i in range(1000) %}{{ (ns.x ~ 'b') in (ns.x ~ ns.x) }}{% endfor %}`,
  'looking for a text among equal ones': `${BIG}{% set m = namespace(l=[ns.x]) %}{% for i in range(14) %}{% set m.l = m.l + m.l %}{% endfor %}{{ (ns.x ~ 'c')[1:] in m.l }}`,
  'a long text that is read in a loop': `${BIG}{% for i in range(100000) %}{{ 'c' in ns.x }}{% endfor %}`,
  'a long text that is cut in a loop': `${BIG}{% for i in range(100000) %}{{ ns.x[1:2] }}{% endfor %}`,
  'a long text that is split': `${BIG}{% for i in range(100) %}{% set ns.y = ns.x.split('a') %}{% endfor %}`,
  'a list that is reversed in a loop': `${LIST}{% for i in range(100000) %}{% set ns.y = ns.x | reverse %}{% endfor %}`,
  'a list of attributes': `${BIG}{% set l = range(30000) %}{{ l | map(attribute=ns.x) }}`,
  'a macro that calls itself': '{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}',
  'macros that branch': `{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(64) }}`,
  'a macro in a loop': `{% for i in range(100000) %}{% macro f() %}${'{{ a }}'.repeat(5000)}{% endmacro %}{% endfor %}`,
  'names that nobody knows': '{% for i in range(1000000) %}{{ a }}{{ b }}{{ c }}{% endfor %}',
};

const render = (source: string): string =>
  new ChatTemplate(source).render({
    messages: [{ role: 'user', content: 'task' }],
    addGenerationPrompt: true,
  });

test.each(Object.entries(BOMBS))(
  '%s: a template is refused before it takes much time or memory',
  (_, source) => {
    const cpu = process.cpuUsage();
    const heap = process.memoryUsage().heapUsed;
    expect(() => render(source)).toThrow(/The checkpoint's chat template does not render the conversation/u);
    const { user, system } = process.cpuUsage(cpu);
    expect((user + system) / 1e6).toBeLessThan(3);
    expect((process.memoryUsage().heapUsed - heap) / 2 ** 20).toBeLessThan(400);
  },
);

test.each([
  ['too long', 'x'.repeat(200_001), 'has 200001 letters'],
  ['white space', ' '.repeat(190_000), 'white space in a row'],
  ['white space inside', `{{-${'\n'.repeat(190_000)}-}}`, 'white space in a row'],
  ['nested too deeply', '{% if a %}'.repeat(15_000), 'cannot be read'],
  ['an expression nested too deeply', `{{ ${'('.repeat(90_000)} }}`, 'cannot be read'],
])('a template that is %s is not read', (_, source, why) => {
  const cpu = process.cpuUsage();
  expect(() => render(source)).toThrow(why);
  expect(process.cpuUsage(cpu).user / 1e6).toBeLessThan(3);
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
