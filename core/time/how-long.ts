const UNITS: readonly [seconds: number, name: string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
];

/** A time in its largest unit: `4 s`, `12 min`, `3 h`, `9 d`. */
export function howLong(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  const [size, name] = UNITS.find(([least]) => seconds >= least) ?? [1, 's'];
  return `${Math.floor(seconds / size)} ${name}`;
}
