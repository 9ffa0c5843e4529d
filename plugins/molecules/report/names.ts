import { percent } from '../../../core/percent.ts';
import type { CalibrationReport } from './report.ts';

/** What people call the tools of a tier; other verifiers keep their names. */
const NAMES: Record<string, string> = { molecule: 'RDKit', xtb: 'xTB', dft: 'DFT' };
export const toolName = (verifier: string): string => NAMES[verifier] ?? verifier;

export const countText = (value: number): string => value.toLocaleString('en');

/** E.g. `8.3 s` or `12 min 5 s`. */
export function duration(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export const dollars = (usd: number): string => `US$ ${usd.toFixed(2)}`;

/** What the pairs of two neighbours say. */
export function calibrationInWords(of: CalibrationReport): string[] {
  const { pairs, line, residual, passesHold } = of;
  const [from, to] = [toolName(of.from), toolName(of.to)];
  const words = [`${countText(pairs.length)} pairs`];
  if (line !== null && residual !== null) {
    const sign = line.slope < 0 ? '−' : '+';
    words.push(
      `${to} ≈ ${line.intercept.toFixed(2)} ${sign} ${Math.abs(line.slope).toFixed(2)} · ${from}`,
      `points lie ${residual.toFixed(2)} off it (rms)`,
    );
  }
  const { successes, trials, low, high } = passesHold;
  if (trials === 0) return [...words, `no pass of ${from} was judged`];
  return [
    ...words,
    `a pass of ${from} held ${countText(successes)} of ${countText(trials)} times (${percent(low)} – ${percent(high)})`,
  ];
}
