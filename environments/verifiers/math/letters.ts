/**
 * What is no number, in one spelling: without white space, the frames of texts and groups, and a sign that says nothing
 * (`+\infty`). Exponents and indices have braces, words no capitals, and a quotient of single terms is a fraction.
 */
export const lettersOf = (text: string): string =>
  asFraction(
    inLowerCase(text.replace(/\\text\{([^{}]*)\}/gu, '$1').trim())
      .replace(/([\^_])\s*(\\[A-Za-z]+(?![A-Za-z]|\s*\{)|[A-Za-z0-9])/gu, '$1{$2}')
      .replace(/\s+/gu, '')
      .replace(FUNCTION, '\\$1$2')
      .replace(/(?<=^|[([,=])\+(?=[\w\\.(])/gu, '')
      .replace(/^\{([^{}]*)\}$/u, '$1'),
  );

/** `\ln{2}` is `\ln 2`, and `\log_2{3}` is `\log_2 3`. */
const FUNCTION = /\\((?:sin|cos|tan|cot|sec|csc|ln|log|exp)(?:[_^]\{[^{}]*\})?)\{([A-Za-z0-9])\}/gu;

/** `AB` may be a segment and `ab` a product: what begins with a capital is a word if it has three letters or more. */
const WORD = /^(?:[A-Z][a-z]{2,}|YES|NO|No|TRUE|FALSE|NONE)$/u;

/** Where there is nothing but words: `\Delta` is no `\delta`. */
function inLowerCase(text: string): string {
  if (!/^[A-Za-z]+(?:[ -]+[A-Za-z]+)*$/u.test(text)) return text;
  return text.replace(/[A-Za-z]+/gu, (word) => (WORD.test(word) ? word.toLowerCase() : word));
}

/**
 * Above one term, or a sum in brackets; below a single factor, or a sum in brackets: whether `x/2y` has its y above nobody
 * can tell.
 */
const QUOTIENT =
  /^(-?)(?:\(([^()]*)\)|([^-+()/,=<>|&^_:;!]+))\/(?:\(([^()]*)\)|(\d+|[A-Za-z]|\\(?:[A-Za-z]+|sqrt)(?:\{[^{}]*\})?))$/u;
const MINUS_ABOVE = /^\\frac\{-((?:[^-+{}]|\{[^-+{}]*\})+)\}(?=\{)/u;

const asFraction = (text: string): string =>
  text
    .replace(
      QUOTIENT,
      (_, sign: string, sum?: string, term?: string, sumBelow?: string, factor?: string) =>
        `${sign}\\frac{${sum ?? term}}{${sumBelow ?? factor}}`,
    )
    .replace(MINUS_ABOVE, '-\\frac{$1}');
