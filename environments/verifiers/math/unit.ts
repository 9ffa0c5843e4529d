// Units behind a number, and their spellings.

/** Words that stand for units without `\text{}`: a letter alone may be a variable. */
const UNIT_WORD =
  /^(?:mm|cm|km|m|inch(?:es)?|in|feet|foot|ft|yards?|miles?|mph|mg|kg|g|grams?|pounds?|lbs?|seconds?|sec|s|minutes?|min|hours?|h|days?|weeks?|months?|years?|dollars?|cents?|degrees?|units?|percent|square|cubic|meters?|metres?|liters?|litres?)$/iu;

/** Letters that stand for units where a text has them alone; `5\mathrm{i}` and `5\mathrm{x}` have none. */
const UNIT_LETTER = /^[mgshlLAVWNJCFKTH]$/u;

/** Words that make another number of the one before them, so that this one is not theirs to be left out. */
const NO_UNIT =
  /^(?:squared|cubed|factorial|plus|minus|over|negative|pi|e|dozen|hal(?:f|ves)|thirds?|fourths?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?|hundreds?|thousands?|millions?|billions?|trillions?|not|no|or|and|less|more|fewer|at|root|to|mod|base)$/u;

/** Singular spellings of one unit, the first standing for all of them. */
const SPELLINGS = [
  ['mm', 'millimeter', 'millimetre'],
  ['cm', 'centimeter', 'centimetre'],
  ['m', 'meter', 'metre'],
  ['km', 'kilometer', 'kilometre'],
  ['in', 'inch', 'inches'],
  ['ft', 'foot', 'feet'],
  ['yd', 'yard'],
  ['mi', 'mile'],
  ['mg', 'milligram'],
  ['g', 'gram'],
  ['kg', 'kilogram'],
  ['lb', 'lbs', 'pound'],
  ['s', 'sec', 'second'],
  ['min', 'minute'],
  ['h', 'hr', 'hour'],
  ['l', 'liter', 'litre'],
  ['deg', 'degree'],
  ['%', 'percent'],
  ['$', 'dollar'],
];
const SPELLED = new Map(SPELLINGS.flatMap((same) => same.map((word) => [word, same[0]!])));

/** What stands behind a number, in one spelling; undefined where that is no unit. */
export function readUnit(text: string, currency: string): string | null | undefined {
  const rest = text.trim();
  if (rest === '') return currency === '' ? null : currency.replace('\\', '');
  if (currency !== '') return undefined;
  if (rest === '%' || rest === '\\%') return '%';
  if (/^\^(?:\{\s*\\circ\s*\}|\\circ)$/u.test(rest)) return 'deg';
  const written = /^\\text\{([^{}]*)\}(.*)$/su.exec(rest);
  const raw = written ? written[1]! : rest.replace(/\^.*$/su, '');
  // One or several, as in `hour(s)`.
  const words = raw.replace(/(?<=[A-Za-z]{2})\((?:s|es)\)/gu, '').trim();
  const power = (written ? written[2]! : rest.slice(raw.length)).trim();
  const exponent = /^(?:\^(?:\{([23])\}|([23])))?$/u.exec(power);
  if (!exponent || !/^[A-Za-z][A-Za-z./ ]{0,40}$/u.test(words)) return undefined;
  if (!written && !words.split(/[\s/]+/u).every((word) => UNIT_WORD.test(word))) return undefined;
  if (
    (words.length === 1 && !UNIT_LETTER.test(words)) ||
    NO_UNIT.test(words.split(/[\s./]/u)[0]!.toLowerCase())
  )
    return undefined;
  const name = words
    .replace(/\.$/u, '')
    .split(/(\s*\/\s*|\s+)/u)
    .map((word, i) => (i % 2 === 0 ? spelled(word) : word.trim() || ' '))
    .join('');
  const raised = exponent[1] ?? exponent[2];
  return raised === undefined ? name : `${name}^${raised}`;
}

function spelled(word: string): string {
  // Mega and milli are told apart by their case alone.
  if (/^M[A-Za-z]$/u.test(word)) return `M${word.slice(1).toLowerCase()}`;
  const plain = word.toLowerCase();
  const singular = /^[a-z]{3,}(?<!s)s$/u.test(plain) ? plain.slice(0, -1) : plain;
  return SPELLED.get(plain) ?? SPELLED.get(singular) ?? singular;
}
