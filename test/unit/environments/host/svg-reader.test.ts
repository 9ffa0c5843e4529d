import { beforeAll, describe, expect, test } from 'vitest';
import { whatIsWrongWithSvg } from '../../../../environments/host/svg-reader.ts';
import { drawMolecule, loadRdkit } from '../../../../environments/families/molecules/rdkit.ts';
import { processorMs } from '../../../support/processor-time.ts';

beforeAll(loadRdkit);

const drawing = (inside: string, attributes = ''): string =>
  `<svg xmlns="http://www.w3.org/2000/svg"${attributes}>${inside}</svg>`;

describe('a drawing is taken', () => {
  test.each([
    ['a circle', drawing('<circle r="4" style="fill:#f00"/>')],
    [
      'what is referred to within',
      drawing('<defs><g id="a"/></defs><use href="#a"/><path clip-path="url(#m)"/>'),
    ],
    [
      'styles for light and dark',
      drawing('<style>@media (prefers-color-scheme: dark) { g { fill: #fff } }</style>'),
    ],
    ['text with < in it', drawing('<text>1 &lt; 2 &#62; 0</text><!-- a comment -->')],
    ['with a declaration', `<?xml version="1.0" encoding="UTF-8"?>\n${drawing('')}\n`],
  ])('%s', (_, svg) => expect(whatIsWrongWithSvg(svg)).toBeNull());

  test('of many elements, some of them drawn again', () => {
    const many = `<g id="a">${'<path d="M 0 0 H 1"/>'.repeat(40)}</g>${'<use href="#a"/>'.repeat(100)}`;
    expect(whatIsWrongWithSvg(drawing(many))).toBeNull();
  });

  test('that RDKit has made', () => {
    expect(whatIsWrongWithSvg(drawMolecule('c1ccccc1OC(=O)N', 300, 200)!)).toBeNull();
  });
});

/** Each of these has ten of the one before. */
const tenfold = (one: (of: string) => string): string =>
  Array.from({ length: 8 }, (_, i) => `<g id="a${i + 1}">${one(`a${i}`).repeat(10)}</g>`).join('');
const chain = (length: number): string =>
  Array.from({ length }, (_, i) => `<g id="a${i}"><use href="#a${i + 1}"/></g>`).join('');

describe('a drawing is refused with', () => {
  test.each([
    ['a script', drawing('<script>alert(1)</script>')],
    ['a script in capitals', drawing('<SCRIPT>alert(1)</SCRIPT>')],
    ['a script with a prefix', drawing('<s:script xmlns:s="http://www.w3.org/2000/svg">alert(1)</s:script>')],
    ['an event', drawing('', ' onload="alert(1)"')],
    ['an event of an element within', drawing("<g ONCLICK = 'alert(1)'/>")],
    ['HTML', drawing('<foreignObject><p>hello</p></foreignObject>')],
    ['another name space', '<svg xmlns="http://www.w3.org/1999/xhtml"/>'],
    ['another name space within', drawing('<g xmlns="http://www.w3.org/1999/xhtml"/>')],
    ['no name space', '<svg><g/></svg>'],
    ['an image', drawing('<image href="http://127.0.0.1:1/x.png"/>')],
    ['a use of another file', drawing('<use href="http://127.0.0.1:1/x.svg#a"/>')],
    ['a use of data', drawing('<use xlink:href="data:image/svg+xml,%3Csvg/%3E"/>')],
    ['an address behind entities', drawing('<use href="&#104;ttp://127.0.0.1:1/x"/>')],
    ['a link', drawing('<a href="javascript:alert(1)"><text>x</text></a>')],
    ['an animation', drawing('<set attributeName="href" to="javascript:alert(1)"/>')],
    ['an import', drawing('<style>@import "http://127.0.0.1:1/x.css";</style>')],
    ['an address in a style', drawing('<style>g { fill: url(http://127.0.0.1:1/x) }</style>')],
    ['an address in a property', drawing('<g style="fill:URL( http://127.0.0.1:1/x )"/>')],
    ['an address in an attribute', drawing('<g fill="url(http://127.0.0.1:1/x)"/>')],
    ['an address in escapes', drawing('<style>g { fill: u\\72l(http://127.0.0.1:1/x) }</style>')],
    ['a document type', `<!DOCTYPE svg [<!ENTITY x "y">]>${drawing('&x;')}`],
    ['an entity of its own', drawing('<text>&x;</text>')],
    ['a style sheet', `<?xml-stylesheet href="x.css"?>${drawing('')}`],
    ['CDATA', drawing('<style><![CDATA[ @import "x" ]]></style>')],
    ['what is not closed', '<svg xmlns="http://www.w3.org/2000/svg"><g></svg>'],
    ['something after it', `${drawing('')}<script>alert(1)</script>`],
    ['words before it', `hello ${drawing('')}`],
    ['nothing in it', ''],
    ['elements without end', drawing('<g>'.repeat(1000))],
    ['an attribute without quotes', drawing('<g fill=red/>')],
    ['a filter', drawing('<g style="filter: blur(1000px)"/>')],
    ['a filter as an attribute', drawing('<g filter="blur(1000px)"/>')],
    ['a filter behind it', drawing('<style>g { backdrop-filter: blur(9px) }</style>')],
    ['a mask', drawing('<mask id="m"/>')],
    ['a marker', drawing('<marker id="m"/>')],
    ['movement', drawing('<style>@keyframes x { to { opacity: 0 } }</style>')],
    ['a reference of its style', drawing('<style>g { clip-path: url(#c) }</style>')],
    ['a style that looks at all for each', drawing('<style>*:has(~ * *) { fill: red }</style>')],
    ['a style of many rules', drawing(`<style>${'*{}'.repeat(2000)}</style>`)],
    ['thousands of elements', drawing('<circle r="1"/>'.repeat(5000))],
    ['an element that uses itself', drawing('<g id="a"><use href="#a"/></g>')],
    ['elements that use each other', drawing('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>')],
    ['elements that use each other ten times', drawing(tenfold((of) => `<use href="#${of}"/>`))],
    ['the same by other addresses', drawing(tenfold((of) => `<path fill="url( '#${of}' )"/>`))],
    ['the same in a property', drawing(tenfold((of) => `<path style="clip-path:url(#${of})"/>`))],
    ['uses one behind the other', drawing(chain(3000))],
  ])('%s', (_, svg) => expect(whatIsWrongWithSvg(svg)).toEqual(expect.any(String)));
});

test('a drawing is read in the time of its length', async () => {
  const long = drawing(`<g ${'a="b" '.repeat(40_000)}`);
  const ms = await processorMs(() => {
    expect(whatIsWrongWithSvg(long)).not.toBeNull();
    expect(whatIsWrongWithSvg(drawing('<!--'.repeat(60_000)))).not.toBeNull();
    expect(whatIsWrongWithSvg(drawing('&#x'.repeat(60_000)))).not.toBeNull();
    expect(whatIsWrongWithSvg(drawing(`<g id="a"${' '.repeat(200_000)}/>`))).toBeNull();
    expect(whatIsWrongWithSvg(drawing(`<g fill="${'url('.repeat(50_000)}"/>`))).not.toBeNull();
    expect(whatIsWrongWithSvg(drawing('<g id="a"/>'.repeat(4900)))).toBeNull();
  });
  // More would say that it tries every way to read it.
  expect(ms).toBeLessThan(5000);
});
