import { escapeXml, line, rect, text } from './elements.ts';

/** What a bar of a timeline is: `lost` is hatched, `waited` a thin line before the work. */
type BarLook = 'done' | 'failed' | 'lost' | 'waited' | 'running';

/** From and to are in milliseconds, of whatever clock. */
export interface LaneBar {
  from: number;
  to: number;
  look: BarLook;
  /** What it is, in words: a tooltip. */
  title: string;
}

interface Lane {
  label: string;
  bars: readonly LaneBar[];
}

export interface LanesOptions {
  /** What the picture shows, for whoever does not see it. */
  title: string;
  from: number;
  to: number;
  /** Pixels. */
  width?: number;
  /** Unique on its page: names the hatching. */
  id?: string;
}

/** Of a lane; what overlaps more is drawn over the others. */
const MOST_ROWS = 12;
const LABELS = 110;
const ROW = 18;
const GAP = 10;
const AXIS = 24;
/** What is shorter is still seen. */
const LEAST = 2;

/** Bars over time, a lane for each kind of work; what overlaps within a lane goes below. */
export function lanes(all: readonly Lane[], options: LanesOptions): string {
  const { title, from, to, width = 960, id = 'lanes' } = options;
  const span = Math.max(1, to - from);
  const plot = width - LABELS - 16;
  const x = (moment: number): number => LABELS + (Math.min(Math.max(moment - from, 0), span) / span) * plot;
  const placed = all.map(({ label, bars }) => ({
    label,
    rows: inRows(bars, (LEAST / plot) * span),
  }));
  const parts: string[] = [];
  let y = 8;
  for (const { label, rows } of placed) {
    parts.push(text(LABELS - 8, y + ROW - 5, label, { size: 12, anchor: 'end', maxWidth: LABELS - 12 }));
    for (const bars of rows) {
      for (const bar of bars)
        parts.push(drawn(bar, x(bar.from), Math.max(LEAST, x(bar.to) - x(bar.from)), y, id));
      y += ROW;
    }
    y += GAP;
  }
  const grid = ticks(span).flatMap((tick) => [
    line(x(from + tick), 4, x(from + tick), y, 'grid'),
    text(x(from + tick), y + 14, durationInWords(tick), { size: 11, anchor: 'middle', className: 'muted' }),
  ]);
  const height = y + AXIS;
  return [
    `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}" class="lanes">`,
    `<defs><pattern id="${escapeXml(id)}-lost" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" class="bar-lost"/><line x1="0" y1="0" x2="0" y2="6" class="hatch"/></pattern></defs>`,
    ...grid,
    ...parts,
    '</svg>',
  ].join('\n');
}

function drawn({ look, title }: LaneBar, x: number, width: number, y: number, id: string): string {
  const thin = look === 'waited';
  const [top, height] = thin ? [y + ROW / 2 - 2, 2] : [y + 1, ROW - 5];
  const bar =
    look === 'lost'
      ? `<rect x="${x.toFixed(2)}" y="${top}" width="${width.toFixed(2)}" height="${height}" fill="url(#${escapeXml(id)}-lost)" class="bar-frame"/>`
      : rect(x, top, width, height, `bar-${look}`, thin ? 0 : 2);
  return `<g>${bar}<title>${escapeXml(title)}</title></g>`;
}

/** Each bar in the first row in which it meets none; `least` milliseconds are what one takes at least. */
function inRows(bars: readonly LaneBar[], least: number): LaneBar[][] {
  const rows: { end: number; bars: LaneBar[] }[] = [];
  for (const bar of bars.toSorted((a, b) => a.from - b.from)) {
    // What is waited for follows at once, in the same row.
    const end = bar.look === 'waited' ? bar.to : Math.max(bar.to, bar.from + least);
    let row = rows.find((other) => other.end <= bar.from);
    if (!row && rows.length < MOST_ROWS) rows.push((row = { end, bars: [] }));
    row ??= rows.at(-1)!;
    row.end = Math.max(row.end, end);
    row.bars.push(bar);
  }
  return rows.length === 0 ? [[]] : rows.map((row) => row.bars);
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000].concat(
  [1, 2, 5, 10, 15, 30, 60, 120, 300, 720, 1440].map((minutes) => minutes * 60_000),
);

/** Some six round moments from 0 on, milliseconds. */
function ticks(span: number): number[] {
  const step = STEPS.find((one) => span / one <= 7) ?? Math.ceil(span / 7 / 86_400_000) * 86_400_000;
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, n) => n * step);
}

/** `0.2 s`, `15 s`, `2 min`, `3 h`. */
function durationInWords(ms: number): string {
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(3))} s`;
  return ms < 3_600_000
    ? `${Number((ms / 60_000).toFixed(1))} min`
    : `${Number((ms / 3_600_000).toFixed(1))} h`;
}
