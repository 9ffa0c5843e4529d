import { Fraction } from 'fraction.js';
import { readUnit } from './unit.ts';

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
const FRACTION = new RegExp(
  String.raw`^\\frac\{\s*([+-]?)(${INTEGER})\s*\}\{\s*([+-]?)(${INTEGER})\s*\}`,
  'u',
);
const SLASH = new RegExp(String.raw`^(${INTEGER})\s*/\s*(${INTEGER})(?![\d.])`, 'u');
const MIXED = new RegExp(
  String.raw`^(${INTEGER})(?:\s*\\frac\{\s*(${INTEGER})\s*\}\{\s*(${INTEGER})\s*\}|\s+(${INTEGER})\s*/\s*(${INTEGER})(?![\d.]))`,
  'u',
);
const TO_THE = String.raw`10\s*\^\s*(?:\{\s*([+-]?\d+)\s*\}|([+-]?\d+))`;
const POWER_OF_TEN = new RegExp(`^${TO_THE}`, 'u');
const TIMES_POWER_OF_TEN = new RegExp(
  String.raw`^(?:\s*(?:\\times|\\cdot|\*|x)\s*${TO_THE}|[eE]([+-]?\d+))`,
  'u',
);

/** Reads a number in LaTeX that `plainLatex` has gone over; null for anything else, sums and products too. */
export function readNumber(text: string): WrittenNumber | null {
  if (text.length > MOST_DIGITS + 100) return null;
  const [, sign, currency, rest] = /^([+-]?)\s*((?:\\\$|[€£])?)\s*(.*)$/su.exec(text)!;
  const read = readMagnitude(rest!);
  if (!read) return null;
  const { times, unit: written } = inThousands(rest!.slice(read.length));
  const unit = readUnit(written, currency!);
  if (unit === undefined) return null;
  const { reducible } = read;
  const value = read.value.mul(times);
  return { value: sign === '-' ? value.neg() : value, unit, reducible };
}

const THOUSANDS = new Map([
  ['hundred', 100],
  ['thousand', 1e3],
  ['million', 1e6],
  ['billion', 1e9],
  ['trillion', 1e12],
]);
const THOUSANDS_WORD = new RegExp(
  String.raw`^\s*(\\text\{)?\s*(${[...THOUSANDS.keys()].join('|')})(?![A-Za-z])\s*(.*)$`,
  'su',
);

/** `5\text{ million dollars}` is no 5 of anything, but 5,000,000 dollars. */
function inThousands(text: string): { times: number; unit: string } {
  const [, frame = '', word, rest] = THOUSANDS_WORD.exec(text) ?? [];
  if (word === undefined) return { times: 1, unit: text };
  return {
    times: THOUSANDS.get(word)!,
    unit: frame !== '' && rest!.startsWith('}') ? rest!.slice(1) : frame + rest!,
  };
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
    const [all, above, n, below, d] = fraction;
    const read = quotient(n!, d!);
    if (!read) return null;
    const [negated, inverted] = [above === '-', below === '-'];
    return {
      value: negated === inverted ? read.value : read.value.neg(),
      reducible: read.reducible || (negated && inverted),
      length: all.length,
    };
  }
  const slash = SLASH.exec(text);
  if (slash) {
    const read = quotient(slash[1]!, slash[2]!);
    return read && { ...read, length: slash[0].length };
  }
  return readDecimal(text);
}

function readDecimal(text: string): Magnitude | null {
  const bare = POWER_OF_TEN.exec(text);
  if (bare) return scaled(new Fraction(1), Number(bare[1] ?? bare[2]), bare[0].length);
  const [all, whole, , decimals, overlined, bracketed] = DECIMAL.exec(text)!;
  const repeating = overlined ?? bracketed;
  if (whole === undefined && !decimals && repeating === undefined) return null;
  if (all.length > MOST_DIGITS) return null;
  const digits = (whole ?? '0').replace(/\D/gu, '');
  const fraction = decimals || repeating ? `.${decimals ?? ''}${repeating ? `(${repeating})` : ''}` : '';
  const value = new Fraction(`${digits}${fraction}`);
  const power = TIMES_POWER_OF_TEN.exec(text.slice(all.length));
  if (!power) return { value, reducible: false, length: all.length };
  return scaled(value, Number(power[1] ?? power[2] ?? power[3]), all.length + power[0].length);
}

/** `value` · 10^`exponent`. */
function scaled(value: Fraction, exponent: number, length: number): Magnitude | null {
  if (Math.abs(exponent) > MOST_EXPONENT) return null;
  const scale = new Fraction(10n ** BigInt(Math.abs(exponent)));
  return { value: exponent < 0 ? value.div(scale) : value.mul(scale), reducible: false, length };
}

const integer = (digits: string): Fraction => new Fraction(BigInt(digits), 1n);

function quotient(numerator: string, denominator: string): Omit<Magnitude, 'length'> | null {
  if (numerator.length + denominator.length > MOST_DIGITS || /^0+$/u.test(denominator)) return null;
  const value = new Fraction(BigInt(numerator), BigInt(denominator));
  // 0 / 5 is nobody's way to leave a division to the reader.
  return { value, reducible: value.n !== 0n && (value.d !== BigInt(denominator) || value.d === 1n) };
}
