import { Fraction } from 'fraction.js';

/** An exact rational number as somebody wrote it. */
export interface WrittenNumber {
  value: Fraction;
  /** `%`, `deg`, `$`, `cm^2`, …; null where none is written. */
  unit: string | null;
  /** Whether it is a fraction that could be reduced: a calculation that has been left to the reader. */
  reducible: boolean;
}

/** Longest numeral that is read, and largest power of ten. */
const MOST_DIGITS = 200;
const MOST_EXPONENT = 300;

const INTEGER = String.raw`\d+`;
/** Thousands do not begin with a 0: `0,123` is two numbers, or 0.123, and never 123. */
const WHOLE = String.raw`[1-9]\d{0,2}(?:(?<separator>[ ,'_])\d{3}(?:\k<separator>\d{3})*)(?!\d)|\d+`;
/** Groups: separator, decimals, what repeats. */
const DECIMAL = new RegExp(String.raw`^(${WHOLE})?(?:\.(\d*)(?:\\overline\{(\d+)\}|\((\d+)\))?)?`, 'u');
const FRACTION = new RegExp(String.raw`^\\frac\{\s*([+-]?)(${INTEGER})\s*\}\{\s*(${INTEGER})\s*\}`, 'u');
const SLASH = new RegExp(String.raw`^(${INTEGER})\s*/\s*(${INTEGER})(?![\d.])`, 'u');
const MIXED = new RegExp(
  String.raw`^(${INTEGER})(?:\s*\\frac\{\s*(${INTEGER})\s*\}\{\s*(${INTEGER})\s*\}|\s+(${INTEGER})\s*/\s*(${INTEGER})(?![\d.]))`,
  'u',
);
const POWER_OF_TEN =
  /^(?:\s*(?:\\times|\\cdot|\*|x)\s*10\s*\^\s*(?:\{\s*([+-]?\d+)\s*\}|([+-]?\d+))|[eE]([+-]?\d+))/u;

/** Words that stand for units without `\text{}`: a letter alone may be a variable. */
const UNIT_WORD =
  /^(?:mm|cm|km|m|inch(?:es)?|in|feet|foot|ft|yards?|miles?|mph|mg|kg|g|grams?|pounds?|lbs?|seconds?|sec|s|minutes?|min|hours?|h|days?|weeks?|months?|years?|dollars?|cents?|degrees?|units?|percent|square|cubic|meters?|metres?|liters?|litres?)$/iu;

/** Reads a number in LaTeX that `plainLatex` has gone over; null for anything else, sums and products too. */
export function readNumber(text: string): WrittenNumber | null {
  if (text.length > MOST_DIGITS + 100) return null;
  const [, sign, currency, rest] = /^([+-]?)\s*((?:\\\$|[€£])?)\s*(.*)$/su.exec(text)!;
  const read = readMagnitude(rest!);
  if (!read) return null;
  const unit = readUnit(rest!.slice(read.length), currency!);
  if (unit === undefined) return null;
  const { value, reducible } = read;
  return { value: sign === '-' ? value.neg() : value, unit, reducible };
}

interface Magnitude {
  value: Fraction;
  reducible: boolean;
  /** Characters that it takes. */
  length: number;
}

function readMagnitude(text: string): Magnitude | null {
  const mixed = MIXED.exec(text);
  if (mixed) {
    const [all, whole, n1, d1, n2, d2] = mixed;
    const part = quotient(n1 ?? n2!, d1 ?? d2!);
    if (!part || part.value.gte(1)) return null;
    return { value: part.value.add(integer(whole!)), reducible: part.reducible, length: all.length };
  }
  const fraction = FRACTION.exec(text);
  if (fraction) {
    const [all, sign, n, d] = fraction;
    const read = quotient(n!, d!);
    return read && { ...read, value: sign === '-' ? read.value.neg() : read.value, length: all.length };
  }
  const slash = SLASH.exec(text);
  if (slash) {
    const read = quotient(slash[1]!, slash[2]!);
    return read && { ...read, length: slash[0].length };
  }
  return readDecimal(text);
}

function readDecimal(text: string): Magnitude | null {
  const [all, whole, , decimals, overlined, bracketed] = DECIMAL.exec(text)!;
  const repeating = overlined ?? bracketed;
  if (whole === undefined && !decimals && repeating === undefined) return null;
  if (all.length > MOST_DIGITS) return null;
  const digits = (whole ?? '0').replace(/\D/gu, '');
  const fraction = decimals || repeating ? `.${decimals ?? ''}${repeating ? `(${repeating})` : ''}` : '';
  const value = new Fraction(`${digits}${fraction}`);
  const power = POWER_OF_TEN.exec(text.slice(all.length));
  if (!power) return { value, reducible: false, length: all.length };
  const exponent = Number(power[1] ?? power[2] ?? power[3]);
  if (Math.abs(exponent) > MOST_EXPONENT) return null;
  const scale = new Fraction(10n ** BigInt(Math.abs(exponent)));
  return {
    value: exponent < 0 ? value.div(scale) : value.mul(scale),
    reducible: false,
    length: all.length + power[0].length,
  };
}

const integer = (digits: string): Fraction => new Fraction(BigInt(digits), 1n);

function quotient(numerator: string, denominator: string): Omit<Magnitude, 'length'> | null {
  if (numerator.length + denominator.length > MOST_DIGITS || /^0+$/u.test(denominator)) return null;
  const value = new Fraction(BigInt(numerator), BigInt(denominator));
  return { value, reducible: value.d !== BigInt(denominator) || value.d === 1n };
}

/** What stands behind a number, in one spelling; undefined where that is no unit. */
function readUnit(text: string, currency: string): string | null | undefined {
  const rest = text.trim();
  if (rest === '') return currency === '' ? null : currency.replace('\\', '');
  if (currency !== '') return undefined;
  if (rest === '%' || rest === '\\%') return '%';
  if (/^\^(?:\{\s*\\circ\s*\}|\\circ)$/u.test(rest)) return 'deg';
  const written = /^\\text\{([^{}]*)\}(.*)$/su.exec(rest);
  const words = (written ? written[1]! : rest.replace(/\^.*$/su, '')).trim();
  const power = (written ? written[2]! : rest.slice(rest.replace(/\^.*$/su, '').length)).trim();
  const exponent = /^(?:\^(?:\{([23])\}|([23])))?$/u.exec(power);
  if (!exponent || !/^[A-Za-z][A-Za-z./ ]{0,40}$/u.test(words)) return undefined;
  if (!written && !words.split(/\s+/u).every((word) => UNIT_WORD.test(word))) return undefined;
  const plain = words.toLowerCase().replace(/\s+/gu, ' ').replace(/\.$/u, '');
  // Mega and milli are told apart by their case alone.
  const name = /^M[A-Za-z]$/u.test(words) ? `M${plain.slice(1)}` : plain;
  if (/^percents?$/u.test(name)) return '%';
  if (/^degrees?$/u.test(name)) return 'deg';
  if (/^dollars?$/u.test(name)) return '$';
  const raised = exponent[1] ?? exponent[2];
  return raised === undefined ? name : `${name}^${raised}`;
}
