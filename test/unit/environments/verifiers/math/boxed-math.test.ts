import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boxedMath } from '../../../../../environments/verifiers/math/boxed-math.ts';
import type { BoxedMathOptions } from '../../../../../environments/verifiers/math/boxed-math.ts';
import { lastBoxed } from '../../../../../environments/verifiers/math/last-boxed.ts';
import { candidateOf, judged, says } from '../candidates.ts';
import { processorMs } from '../../../../support/processor-time.ts';
import { propertyRuns } from '../../../../support/property-runs.ts';

const saying = (answer: string, expected: string, options?: BoxedMathOptions) =>
  judged(boxedMath(options), candidateOf({ answer: expected }, [says(answer)]));
/** Of what stands in a box. */
const score = async (given: string, expected: string, options?: BoxedMathOptions): Promise<number> =>
  (await saying(`so \\boxed{${given}}.`, expected, options)).score;

describe('the last box', () => {
  test.each<[string, string | null]>([
    ['\\boxed{5}', '5'],
    ['\\boxed {5} and then \\fbox{6}', '6'],
    ['\\boxed{\\frac{1}{2}}', '\\frac{1}{2}'],
    ['\\boxed{\\{1, 2\\}}', '\\{1, 2\\}'],
    ['\\boxed{a\\}b}', 'a\\}b'],
    ['\\boxed{\\boxed{7}}', '7'],
    ['\\boxed{5} \\boxed{6', '5'],
    ['{\\boxed{5}}', '5'],
    ['} \\boxed{5}', '5'],
    ['\\boxed{}', ''],
    ['\\boxed{a\\\\}', 'a\\\\'],
    ['\\boxed{\\begin{pmatrix}1\\\\{2}\\end{pmatrix}}', '\\begin{pmatrix}1\\\\{2}\\end{pmatrix}'],
    ['\\boxed{\\{1\\\\{2}\\}} {3}', '\\{1\\\\{2}\\}'],
    ['\\boxed{5', null],
    ['boxed{5}', null],
    ['the answer is 5', null],
    ['', null],
  ])('of %s is %s', (text, expected) => {
    expect(lastBoxed(text)).toBe(expected);
  });

  test('is found at once in a text of nothing but boxes that are never closed', async () => {
    const ms = await processorMs(() => {
      expect(lastBoxed('\\boxed{'.repeat(100_000))).toBeNull();
      expect(lastBoxed(`\\boxed{1}${'{'.repeat(500_000)}`)).toBe('1');
    });
    // With the square of the number it would be minutes.
    expect(ms).toBeLessThan(20_000);
  });
});

describe('in a box', () => {
  test.each([
    ['5', '5'],
    ['+5', '5.0'],
    ['-0', '0'],
    ['\u22125', '-5'],
    ['1,234,567', '1234567'],
    ['1{,}234', '1234'],
    ['1\\,234', '1234'],
    ['0.5', '\\frac{1}{2}'],
    ['.5', '1/2'],
    ['\\dfrac12', '0.5'],
    ['\\tfrac{1}{2}', '\\frac{1}{2}'],
    ['-\\frac{1}{2}', '\\frac{-1}{2}'],
    ['½', '0.5'],
    ['3½', '3.5'],
    ['3\\frac{1}{2}', '7/2'],
    ['3 1/2', '3.5'],
    ['0.\\overline{3}', '1/3'],
    ['0.1(6)', '\\frac{1}{6}'],
    ['3.2 \\times 10^{5}', '320000'],
    ['3.2\\cdot10^{-3}', '0.0032'],
    ['3e2', '300'],
    ['50\\%', '50\\%'],
    ['50\\%', '0.5'],
    ['50', '50\\%'],
    ['5\\text{ cm}', '5'],
    ['5', '5\\text{ cm}'],
    ['5 cm', '5\\,\\mathrm{cm}'],
    ['25 \\text{ cm}^2', '25\\text{ cm}^{2}'],
    ['90^\\circ', '90°'],
    ['90^{\\circ}', '90 degrees'],
    ['\\$12.50', '12.5'],
    ['12.50 dollars', '\\$12.50'],
    ['$5$', '5'],
    ['x = 5', '5'],
    ['x \\in [1, 2)', '[1,2)'],
    ['(5)', '5'],
    ['\\left(1, \\frac12\\right)', '(1, 0.5)'],
    ['\\{2, 1\\}', '\\{1, 2\\}'],
    ['-1, 3', '3,-1'],
    ['3\\text{ and }-1', '-1, 3'],
    ['[0, \\infty)', '[0,\\infty)'],
    ['(1,2) \\cup (3,4)', '(1,2)\\cup(3,4)'],
    ['2\\sqrt{3}', '2\\sqrt3'],
    ['\\text{Evelyn}', 'Evelyn'],
    ['\\text{1234}', '1234'],
    ['\\mathbf{1234}', '1234'],
    ['{1234}', '1234'],
    ['\\textbf{ {-\\frac{1}{2}} }', '-0.5'],
    ['\\text{5 cm}', '5'],
    ['(\\text{1}, 2)', '(1, 2)'],
    ['\\pi', 'π'],
    ['5.', '5'],
    ['1234567890123456789012345678901', '1234567890123456789012345678901.0'],
    ['x^{2}', 'x^2'],
    ['x_{1}^{2} + y^{\\pi}z', 'x_1^2+y^\\pi z'],
    ['132_{5}', '132_5'],
    ['10^5', '100000'],
    ['10^{5}', '1e5'],
    ['-10^{-3}', '-0.001'],
    ['10^{6}\\text{ m}', '1000000'],
    ['\\frac{1}{-2}', '-\\frac{1}{2}'],
    ['\\frac{-1}{-2}', '\\frac{-1}{-2}'],
    ['\\frac{0}{5}', '0'],
    ['0/5', '0'],
    ['3 hour(s)', '3 hours'],
    ['3\\text{ hour(s)}', '3\\text{ hour}'],
    ['3\\text{ hours}', '3\\text{ h}'],
    ['5 \\text{ meters}', '5 m'],
    ['5 \\text{ apples}', '5 \\text{ apple}'],
    ['60 \\text{ km/hour}', '60 \\text{ km/h}'],
    ['(0,+\\infty)', '(0,\\infty)'],
    ['(-\\infty,0)\\cup(0,+\\infty)', '(-\\infty, 0) \\cup (0, \\infty)'],
    ['x=+\\sqrt{2}', '\\sqrt2'],
    ['\\text{Yes}', 'yes'],
    ['Yes', 'yes'],
    ['\\text{evelyn}', 'Evelyn'],
    ['\\text{new york}', '\\text{New York}'],
    ['\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}', '\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}'],
    ['\\begin{pmatrix} 0.5 \\\\[2pt] -1 \\\\ \\end{pmatrix}', '\\begin{bmatrix}\\frac12\\\\-1\\end{bmatrix}'],
    ['4\u200b', '4'],
    ['\ufeff1{,}234', '1234'],
    ['\\frac{\\pi}{2}', '\\frac\\pi2'],
    ['\\dfrac{\\sqrt{3}}2', '\\frac{√3}{2}'],
    ['\\frac ab', '\\frac{a}{b}'],
    ['{3 \\over 4}', '0.75'],
    ['π/2', '\\frac{\\pi}{2}'],
    ['-\\sqrt{3}/2', '\\frac{-\\sqrt{3}}{2}'],
    ['(1+\\sqrt5)/2', '\\frac{1+\\sqrt{5}}{2}'],
    ['2√3', '2\\sqrt{3}'],
    ['\\sqrt[3]2', '\\sqrt[3]{2}'],
    ['\\binom52', '\\dbinom{5}{2}'],
    ['\\ln{2}', '\\ln 2'],
    ['\\log_2{3}', '\\log_{2}3'],
    ['\\mathbb R', '\\mathbb{R}'],
    ['x²-1', 'x^{2}-1'],
    ['1×10⁻³', '0.001'],
    ['5 cm²', '5\\text{ cm}^2'],
    ['90\\degree', '90^{ \\circ }'],
    ['30^\\circ\\text{C}', '30^{\\circ} \\text{C}'],
    ['0.\\bar3', '1/3'],
    ['0.\\overline3', '0.\\dot{3}'],
    ['\\boldsymbol{5}', '5'],
    ['5\\mathsf{ m}', '5'],
    ['\\text{14 ways}', '14'],
    ['50 m/s', '50\\text{ m/s}'],
    ['5\\text{ million}', '5000000'],
    ['\\$5\\text{ million}', '\\$5{,}000{,}000'],
    ['2.5 \\text{ million dollars}', '\\$2500000'],
    ['25 \\text{ units squared}', '25'],
    ['\\text{(C)}', 'C'],
    ['\\textbf{(C)}', '(C)'],
    ['\\text{A, B}', 'B, A'],
    ['\\text{A}, \\text{ and } B', 'A,B'],
    ['1, 2, and 3', '1,2,3'],
    ['1 or 2', '1,2'],
    ['x = 1 and y = 2', 'x=1, y=2'],
    ['\\lbrace 1,2\\rbrace', '\\{2,1\\}'],
    ['\\pm 2', '-2, 2'],
    ['x = \\pm\\sqrt{2}', '\\sqrt2, -\\sqrt2'],
    ['1 ± \\sqrt2', '1+\\sqrt{2}, 1-\\sqrt{2}'],
    ['\\pm 1, \\pm 2', '\\{-2,-1,1,2\\}'],
    ['\\varnothing', '\\emptyset'],
    ['\\{\\}', '∅'],
    ['(0,\\infty)\\cup(-\\infty,0)', '(-\\infty,0) \\cup (0,\\infty)'],
    ['(0.5,1)\\cup[2,3)', '(\\frac12,1)\\cup[2.0,3)'],
    ['(x, y) = (1, 2)', '(1,2)'],
    ['f(x) = x^2', 'x^{2}'],
    [
      '\\left[\\begin{array}{rr}1 & 0 \\\\ 0 & 1\\end{array}\\right]',
      '\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix}',
    ],
  ])('%s says %s', async (given, expected) => {
    expect(await score(given, expected)).toBe(1);
    // Whoever wrote the task may have written it the other way.
    expect(await score(expected, given)).toBe(1);
  });

  test.each([
    ['6', '5'],
    ['-5', '5'],
    ['0.33', '1/3'],
    ['0.3333333333333333', '\\frac13'],
    ['1234567890123456789012345678901', '1234567890123456789012345678902'],
    ['1,23', '123'],
    ['1234', '12,34'],
    ['5x', '5'],
    ['5 x', '5'],
    ['5 m', '5 cm'],
    ['5\\text{ cm}^2', '5\\text{ cm}'],
    ['5^2', '5'],
    ['5\\text{ or }6', '5'],
    ['5\\text{ 6}', '5'],
    ['\\text{5 6}', '56'],
    ['\\text{5} \\text{6}', '56'],
    ['{5}{6}', '56'],
    ['(1,2)', '(2,1)'],
    ['(1,2]', '(1,2)'],
    ['1,2,3,4,5', '5'],
    ['\\{1,1,2\\}', '\\{1,2\\}'],
    ['1,2,3', '1,2'],
    ['2+3', '5'],
    ['2\\cdot 3', '6'],
    ['\\frac{6}{2}', '3'],
    ['6/2', '3'],
    ['6/8', '3/4'],
    ['\\frac{1}{0}', '0'],
    ['1e999999999', '1'],
    ['10^{999999999}', '1'],
    ['', '0'],
    ['', ''],
    ['NaN', '0'],
    ['\\infty', '-\\infty'],
    ['5²', '52'],
    ['5²', '25'],
    ['5½', '51/2'],
    ['⑩', '10'],
    ['1/2³', '1/23'],
    ['0,123', '123'],
    ['0{,}123', '123'],
    ['x^{2}', 'x^3'],
    ['x^{12}', 'x^{1}2'],
    ['x_2', 'x^2'],
    ['132_5', '132'],
    ['132_5', '132_6'],
    ['10^5', '10'],
    ['10^5', '50'],
    ['10^{5}', '10^{-5}'],
    ['10^5x', '100000'],
    ['\\frac{1}{-2}', '0.5'],
    ['\\frac{6}{-3}', '-2'],
    ['\\frac{-1}{-2}', '0.5'],
    ['\\frac{5}{0}', '0'],
    ['\\frac{0}{0}', '0'],
    ['3 hours', '3 minutes'],
    ['5 \\text{ ms}', '5 \\text{ m}'],
    ['5 \\text{ m}', '5 \\text{ min}'],
    ['(0,-\\infty)', '(0,\\infty)'],
    ['1+\\sqrt{2}', '1\\sqrt{2}'],
    ['\\text{Yes}', 'no'],
    ['AB', 'ab'],
    ['\\text{AB}', 'ab'],
    ['X', 'x'],
    ['\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}', '\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}'],
    ['\\begin{pmatrix}1\\\\2\\end{pmatrix}', '\\begin{pmatrix}1&2\\end{pmatrix}'],
    ['\\begin{pmatrix}12\\end{pmatrix}', '\\begin{pmatrix}1&2\\end{pmatrix}'],
    ['\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}', '\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}'],
    ['\\begin{pmatrix}4\\end{pmatrix}', '4'],
    ['5\\text{ million}', '5'],
    ['5\\text{ hundred}', '5'],
    ['5\\text{ dozen}', '5'],
    ['3\\text{ fifths}', '3'],
    ['5\\text{ squared}', '5'],
    ['5\\text{ factorial}', '5'],
    ['5\\text{ or less}', '5'],
    ['5\\text{ pi}', '5'],
    ['5\\mathrm{i}', '5'],
    ['5\\mathrm{x}', '5'],
    ['5\\mathbf{v}', '5'],
    ['5 M', '5 m'],
    ['1$2', '12'],
    ['1$$234', '1234'],
    ['1\\(2\\)', '12'],
    ['1\\left2', '12'],
    ['1\\quad 234', '1234'],
    ['1\uE0002', '12'],
    ['x/2y', '\\frac{x}{2y}'],
    ['1+x/2', '\\frac{1+x}{2}'],
    ['\\frac{-1+x}{2}', '-\\frac{1+x}{2}'],
    ['\\sqrt23', '\\sqrt{23}'],
    ['√23', '\\sqrt{2}3'],
    ['\\frac123', '\\frac{1}{23}'],
    ['\\pm 2', '2'],
    ['\\pm 2', '\\pm 3'],
    ['1 \\pm 2', '1+2'],
    ['2, 2', '\\pm 2'],
    ['(1,2)\\cap(3,4)', '(1,2)\\cup(3,4)'],
    ['(1,2)\\cup(3,4)', '(1,2)\\cup(3,4]'],
    ['(1,2)\\cup(3,4)', '(1,4)'],
    ['(x,y) = (1,2)', '(y,x) = (1,2)'],
    ['(x,y) = (2,1)', '(1,2)'],
    ['\\{0\\}', '\\emptyset'],
    ['2x^2', '22x'],
    ['x²', '2x'],
    ['[\\begin{matrix}1&2\\end{matrix}]', '[1,2]'],
    ['\\left|\\begin{array}{cc}1&0\\\\0&1\\end{array}\\right|', '\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix}'],
  ])('%s does not say %s', async (given, expected) => {
    if (given !== '' || expected !== '') expect(await score(given, expected)).toBe(0);
    expect((await saying(given, expected)).score).toBe(0);
  });

  test('a fraction need not be reduced where the task says so, or does not do so itself', async () => {
    expect(await score('6/8', '3/4', { lowestTerms: false })).toBe(1);
    expect(await score('6/8', '6/8')).toBe(1);
  });

  test('an unknown that is named has its own value', async () => {
    expect(await score('x = 1, y = 2', 'x = 1, y = 2')).toBe(1);
    expect(await score('y=2\\text{ and }x=1', 'x = 1, y = 2')).toBe(1);
    expect(await score('x = 2, y = 1', 'x = 1, y = 2')).toBe(0);
    expect(await score('1, 2', 'x = 1, y = 2')).toBe(1);
    expect(await score('x = 2, x = 1', 'x = 1, x = 2')).toBe(1);
    expect(await score('2, 1', 'x = 1, x = 2')).toBe(1);
  });

  test('what a list names are no thousands of each other, and thousands are no lists', async () => {
    expect(await score('12345', '12\\text{ or }345')).toBe(0);
    expect(await score('345\\text{ or }12', '12\\text{ or }345')).toBe(1);
    expect(await score('12,345', '12 \\text{ and } 345')).toBe(0);
    expect(await score('1{,}555, \\frac{1}{2}', '\\{0.5, 1555\\}')).toBe(1);
    expect(await score('(1, 0)', '(1{,}000, 0)')).toBe(0);
    expect(await score('123', '0{,}123')).toBe(0);
  });

  test('points are told in any order, and intervals that are joined in one', async () => {
    expect(await score('(3,4), (1,2)', '(1,2), (3,4)')).toBe(1);
    expect(await score('(3,4), (2,1)', '(1,2), (3,4)')).toBe(0);
    expect(await score('(1,2) \\cup (3,4)', '(1, 2) \\cup (3, 4)')).toBe(1);
    expect(await score('(1,2) \\cup (3,4)', '(1,2), (3,4)')).toBe(0);
  });

  test('mega is not milli', async () => {
    expect(await score('5 \\text{ MW}', '5 \\text{ mW}')).toBe(0);
    expect(await score('5 \\text{ mw}', '5 \\text{ mW}')).toBe(1);
    expect(await score('5 \\text{ CM}', '5 \\text{ cm}')).toBe(1);
  });

  test('what comes down to the same has one canonical form', async () => {
    const forms = ['0.5', '\\frac{1}{2}', '1/2', '.50', '½', 'x = 0.5'];
    const lines = await Promise.all(
      forms.map(async (form) => (await saying(`\\boxed{${form}}`, '1')).canonical),
    );
    expect(new Set(lines)).toEqual(new Set(['1/2']));
    expect((await saying('\\boxed{2,1}', '1')).canonical).toBe('{1,2}');
    // What cannot be read comes down to nothing, and is no vote.
    for (const none of ['no box', '\\boxed{', '\\boxed{}', `\\boxed{${'1'.repeat(501)}}`])
      expect((await saying(none, '1')).canonical).toBe('');
  });

  test('every rational number is the one that it is, in each of its spellings', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.integer({ min: 2, max: 10_000 }),
        fc.integer(),
        async (n, d, other) => {
          const decimals = `${n}.${d}`;
          expect(await score(decimals, decimals)).toBe(1);
          expect(await score(String(n), `${n}.000`)).toBe(1);
          expect(await score(String(other), String(n))).toBe(other === n ? 1 : 0);
          expect(await score(`\\frac{${n}}{${d}}`, `${n}/${d}`, { lowestTerms: false })).toBe(1);
        },
      ),
      { numRuns: propertyRuns(100) },
    );
  });

  test('any text at all is read in no time, and scored', async () => {
    const hostile = [
      '{'.repeat(400),
      '('.repeat(400),
      `${'('.repeat(200)}${')'.repeat(200)}`,
      ','.repeat(400),
      '\\frac'.repeat(90),
      '\\frac{1}{'.repeat(50),
      '1 '.repeat(200),
      '1,234'.repeat(90),
      `0.(${'9'.repeat(400)})`,
      '9'.repeat(5000),
      `1e${'9'.repeat(300)}`,
      'a='.repeat(200),
      '\\text{'.repeat(80),
      `${'{'.repeat(250)}${'}'.repeat(250)}`,
      ' '.repeat(490),
      '\u0000\uD800\\boxed{',
      '__proto__',
      '\\frac\\frac'.repeat(40),
      `${'\\frac{'.repeat(30)}${'}{'.repeat(30)}${'}'.repeat(30)}`,
      '\\pm'.repeat(150),
      '1\\cup '.repeat(60),
      '1$'.repeat(200),
      '1 and '.repeat(80),
      `x^${' '.repeat(480)}`,
    ];
    const before = process.cpuUsage();
    for (const text of hostile) {
      expect(await score(text, '5')).toBe(0);
      expect(await score('5', text)).toBe(0);
    }
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom(...'\\frac{}[](),.12^ex%-$ ~'.split('')), maxLength: 300 }),
        async (text) => {
          expect([0, 1]).toContain(await score(text, '5'));
          expect([0, 1]).toContain((await saying(`\\boxed{${text}}`, text)).score);
        },
      ),
      { numRuns: propertyRuns(300) },
    );
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(10_000);
  });
});

describe('boxed mathematics', () => {
  test('asks for a box, unless it is told not to', async () => {
    expect((await saying('5', '5')).score).toBe(0);
    expect((await saying('5', '5', { bare: true })).score).toBe(1);
    expect((await saying('it is 5', '5', { bare: true })).score).toBe(0);
  });

  test('reads the box of a task that has one, too', async () => {
    expect((await saying('\\boxed{5}', 'Therefore \\boxed{5}')).score).toBe(1);
  });

  test('scores a missing answer 0 and abstains where nothing is expected', async () => {
    expect((await judged(boxedMath(), candidateOf({ answer: '5' }, []))).score).toBe(0);
    const { signal } = new AbortController();
    const verdict = await boxedMath().verify(candidateOf({}, [says('\\boxed{5}')]), { signal });
    // Samples are compared by value all the same.
    expect(verdict).toMatchObject({ kind: 'abstain', canonical: '5' });
  });
});
