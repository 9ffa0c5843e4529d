import { visibleCharacters } from '../../../core/plain-characters.ts';

/** One spelling for what LaTeX and Unicode write in several, without changing what it says. */
export function plainLatex(latex: string): string {
  return (
    visibleCharacters(latex)
      // The end of a row of a matrix, before its second backslash could be taken for the next command's.
      .replace(/\\\\(?:\s*\[\s*-?[\d.]+\s*[a-z]{2}\s*\])?/gu, '\\cr ')
      // Before the digits around it could be taken into it.
      .replace(/[\u00BC-\u00BE\u2150-\u215E]/gu, (char) => ` ${char.normalize('NFKC')}`)
      .replace(/[\uFF01-\uFF5E]/gu, (char) => String.fromCodePoint(char.codePointAt(0)! - 0xfee0))
      .replace(/[\u2212\u2010-\u2015\uFE63]/gu, '-')
      .replace(/\u2044/gu, '/')
      .replace(/[×✕]/gu, '\\times ')
      .replace(/[·⋅]/gu, '\\cdot ')
      .replace(/°/gu, '^\\circ')
      .replace(/∞/gu, '\\infty ')
      .replace(/π/gu, '\\pi ')
      .replace(/≤|\\leq(?:slant)?(?![A-Za-z])/gu, '\\le ')
      .replace(/≥|\\geq(?:slant)?(?![A-Za-z])/gu, '\\ge ')
      .replace(/≠|\\neq(?![A-Za-z])/gu, '\\ne ')
      .replace(/∪/gu, '\\cup ')
      .replace(/∩/gu, '\\cap ')
      .replace(/\\(?:left|right|bigl?|bigr|Bigl?|Bigr|displaystyle|textstyle)(?![A-Za-z])/gu, '')
      .replace(/\\[()[\]]/gu, '')
      .replace(/(?<!\\)\$/gu, '')
      .replace(/\\!/gu, '')
      // Thousands, which a comma alone could not be told from in a list.
      .replace(/(?<=\d)\{,\}(?=\d{3}(?!\d))/gu, "'")
      .replace(/\{,\}/gu, ',')
      .replace(/\\[,;: ]|~|\\q?quad(?![A-Za-z])/gu, ' ')
      .replace(/\\(?:text(?:bf|it|rm|normal)?|mathrm|mathbf|mbox)\s*\{/gu, '\\text{')
      .replace(/\\text\{\s*(?:and|or)\s*\}/gu, ', ')
      .replace(/\\[dtc]frac(?![A-Za-z])/gu, '\\frac')
      .replace(/\\frac\s*(\d)/gu, '\\frac{$1}')
      .replace(/(\\frac\{[^{}]*\})\s*(\d)/gu, '$1{$2}')
      .replace(/(\\frac\{[^{}]*\})\s+\{/gu, '$1{')
      .replace(/\s+/gu, ' ')
      .trim()
      // The end of a sentence.
      .replace(/(?<=.)\.$/u, '')
      .trim()
  );
}
