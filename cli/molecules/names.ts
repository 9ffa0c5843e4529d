import { percent } from '../show-progress.ts';
import type { CalibrationReport } from './report.ts';

/** What people call the tools of a tier; other verifiers keep their names. */
const NAMES: Record<string, string> = { molecule: 'RDKit', xtb: 'xTB', dft: 'DFT' };
export const toolName = (verifier: string): string => NAMES[verifier] ?? verifier;

export const count = (value: number): string => value.toLocaleString('en');

/** E.g. `8.3 s` or `12 min 5 s`. */
export function duration(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export const dollars = (usd: number): string => `US$ ${usd.toFixed(2)}`;

/** What the pairs of two neighbours say, in short lines. */
export function calibrationInWords({
  from,
  to,
  pairs,
  line,
  residual,
  passesHold,
}: CalibrationReport): string[] {
  const [cheap, dear] = [toolName(from), toolName(to)];
  const words = [`${count(pairs.length)} pairs`];
  if (line !== null && residual !== null) {
    words.push(`${dear} ≈ ${line.intercept.toFixed(2)} + ${line.slope.toFixed(2)} · ${cheap}`);
    words.push(`points lie ${residual.toFixed(2)} off it (rms)`);
  }
  const { held, of, mean, deviation } = passesHold;
  if (of === 0) return [...words, `no pass of ${cheap} was judged`];
  return [
    ...words,
    `a pass of ${cheap} held`,
    `${count(held)} of ${count(of)} times`,
    `(${percent(mean)} ± ${percent(deviation)})`,
  ];
}
