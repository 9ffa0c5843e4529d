import { visibleCharacters } from '../../../core/plain-characters.ts';
import { bracedArguments } from './arguments.ts';

/** Stands for what is not seen until it is known what is on both sides of it. */
const SEAM = '\uE000';
const UNSEEN =
  /\\(?:left|right|[bB]ig{1,2}[lr]?|displaystyle|textstyle|q?quad)(?![A-Za-z])|\\[()[\]]|(?<!\\)\$/gu;
/** Digits on both sides are those of two numbers: `$1$2` is no 12. */
const BETWEEN_DIGITS = /(?<=\d)[\s\uE000]*\uE000[\s\uE000]*(?=\d)/gu;

const FRAMES =
  /\\(?:text(?:bf|it|rm|sf|tt|sc|up|md|normal)?|math(?:rm|bf|it|sf|tt|normal)|[mh]box|boldsymbol|bm|emph|operatorname|rm|bf|it)\s*\{/gu;

/** One spelling for what LaTeX and Unicode write in several, without changing what it says. */
export function plainLatex(latex: string): string {
  const characters = visibleCharacters(latex)
    // The end of a row of a matrix, before its second backslash could be taken for the next command's.
    .replace(/\\\\(?:\s*\[\s*-?[\d.]+\s*[a-z]{2}\s*\])?/gu, '\\cr ')
    // Before the digits around it could be taken into it.
    .replace(/[\u00BC-\u00BE\u2150-\u215E]/gu, (char) => ` ${char.normalize('NFKC')}`)
    .replace(/[⁰¹²³⁴-⁹⁺⁻]+/gu, (raised) => `^{${raised.normalize('NFKC')}}`)
    .replace(/[₀-₉]+/gu, (lowered) => `_{${lowered.normalize('NFKC')}}`)
    .replace(/[\uFF01-\uFF5E]/gu, (char) => String.fromCodePoint(char.codePointAt(0)! - 0xfee0))
    .replace(/[\u2212\u2010-\u2015\uFE63]/gu, '-')
    .replace(/\u2044/gu, '/')
    .replace(/[×✕]/gu, '\\times ')
    .replace(/[·⋅]/gu, '\\cdot ')
    .replace(/√\s*(\d+(?:\.\d+)?|[A-Za-z])/gu, '\\sqrt{$1}')
    .replace(/√/gu, '\\sqrt ')
    .replace(/±/gu, '\\pm ')
    .replace(/°|\\(?:text)?degree(?![A-Za-z])/gu, '^\\circ ')
    .replace(/∞/gu, '\\infty ')
    .replace(/π/gu, '\\pi ')
    .replace(/≤|\\leq(?:slant)?(?![A-Za-z])/gu, '\\le ')
    .replace(/≥|\\geq(?:slant)?(?![A-Za-z])/gu, '\\ge ')
    .replace(/≠|\\neq(?![A-Za-z])/gu, '\\ne ')
    .replace(/∪/gu, '\\cup ')
    .replace(/∩/gu, '\\cap ');
  const commands = characters
    .replace(UNSEEN, SEAM)
    .replace(BETWEEN_DIGITS, ' | ')
    .replaceAll(SEAM, '')
    .replace(/\\!/gu, '')
    // Thousands, which a comma alone could not be told from in a list.
    .replace(/(?<=\d)\{,\}(?=\d{3}(?!\d))/gu, "'")
    .replace(/\{,\}/gu, ',')
    .replace(/\\[,;: ]|~/gu, ' ')
    .replace(/\\lbrace(?![A-Za-z])/gu, '\\{')
    .replace(/\\rbrace(?![A-Za-z])/gu, '\\}')
    .replace(/∅|\\varnothing(?![A-Za-z])|\\\{\s*\\\}/gu, '\\emptyset ')
    .replace(/\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))/gu, '^\\circ ')
    .replace(FRAMES, '\\text{')
    .replace(/,?\s*\\text\{\s*(?:and|or)\s*\}/gu, ', ')
    .replace(/(?<=[\d})\]])\s*,?\s+(?:and|or)\s+(?=[-+\d\\({[]|[A-Za-z]\s*=)/gu, ', ')
    .replace(/\\[dtc]frac(?![A-Za-z])/gu, '\\frac')
    .replace(/\\[dt]binom(?![A-Za-z])/gu, '\\binom')
    .replace(/\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}/gu, '\\frac{$1}{$2}')
    // What repeats, of a decimal.
    .replace(
      /(?<=\.\d*)\\(?:bar|dot|overline)\s*(\d|\{\s*\d+\s*\})/gu,
      (_, digits: string) => `\\overline{${digits.replace(/\D/gu, '')}}`,
    )
    .replace(/\s+/gu, ' ');
  return (
    bracedArguments(commands)
      .trim()
      // The end of a sentence.
      .replace(/(?<=.)\.$/u, '')
      .trim()
  );
}
