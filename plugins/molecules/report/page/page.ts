import type { MoleculesReport } from '../report.ts';
import { calibrationChart } from './calibration.ts';
import { cards } from './cards.ts';
import type { Tiers } from './cards.ts';
import { reportFunnel } from './funnel.ts';
import { qualityStrip } from './quality.ts';
import { STYLE } from './style.ts';
import { group, svgPage, text } from '../../../../svg/elements.ts';

const WIDTH = 1200;
const MARGIN = 32;
const GAP = 16;

export interface PageText {
  title: string;
  /** Under the title: what was run. */
  lines: readonly string[];
}

/** The report as one SVG file that needs nothing else: readable on light and dark desktops. */
export function moleculesPage({ title, lines }: PageText, report: MoleculesReport): string {
  const inner = WIDTH - 2 * MARGIN;
  const parts: string[] = [];
  let y = MARGIN;
  const heading = (words: string): void => {
    parts.push(text(MARGIN, y + 18, words, { size: 18, bold: true }));
    y += 32;
  };
  parts.push(text(MARGIN, y + 22, title, { size: 26, bold: true }));
  y += 34;
  for (const words of lines) {
    parts.push(text(MARGIN, y + 14, words, { className: 'muted', maxWidth: inner }));
    y += 20;
  }
  y += 12;

  const quality = qualityStrip(inner, report.quality);
  parts.push(group(MARGIN, y, quality.parts));
  y += quality.height + 20;

  const { judge } = report.quality;
  if (judge !== null && report.best.length > 0) {
    heading('Best molecules');
    const best = cards(inner, report.best, judge, tiersOf(report));
    parts.push(group(MARGIN, y, best.parts));
    y += best.height + 12;
    const key =
      'Green: the window that was wanted. Circle: xTB, with one standard deviation of what it may be off on the scale of DFT. Diamond: DFT.';
    parts.push(text(MARGIN, y + 10, key, { size: 12, className: 'muted', maxWidth: inner }));
    y += 32;
  }

  const half = (inner - GAP) / 2;
  const height = Math.max(report.calibration.length > 0 ? 400 : 0, 112 + report.funnel.length * 84);
  parts.push(group(MARGIN, y, reportFunnel(half, height, report.funnel)));
  parts.push(group(MARGIN + half + GAP, y, calibrationChart(half, height, report.calibration)));
  y += height + MARGIN;

  return svgPage({ title, width: WIDTH, height: y, style: STYLE }, parts);
}

/** Which tier a verifier is of; the judge of the report need not be a tier. */
function tiersOf({ funnel, quality: { judge } }: MoleculesReport): Tiers {
  const tiers = Object.fromEntries(funnel.map(({ verifier, tier }) => [verifier, tier] as const));
  return judge === null ? tiers : { [judge]: 'high-fidelity', ...tiers };
}
