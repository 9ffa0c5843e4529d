import { InvalidArgumentError } from 'commander';

/** For an option that is a number from `least` to `most`. */
export function numberFrom(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`give a number from ${least}${most === Infinity ? '' : ` to ${most}`}`);
  };
}

/** For an option that is a whole number from `least` on. */
export function wholeFrom(least: number): (text: string) => number {
  return (text) => {
    const value = numberFrom(least, Infinity)(text);
    if (Number.isSafeInteger(value)) return value;
    throw new InvalidArgumentError(`give a whole number from ${least}`);
  };
}

/** A number for people: as it is written, without the digits that only binary fractions have (0.04, not 0.039999999999999994). */
export const rounded = (value: number): string => String(Number(value.toPrecision(6)));
