// Prometheus's text format, as far as it takes to put what several processes say into one answer: samples of a metric
// stand together, below one HELP and one TYPE.

interface Described {
  help: string | null;
  type: string | null;
  samples: string[];
}

/** What one process says, and the labels by which its samples are told from others'. */
export interface Exposition {
  text: string;
  labels: Record<string, string>;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const VALUE = /^ *(?:[+-]?(?:Inf|NaN|\d[\d.eE+-]*|\.\d[\deE+-]*))(?: +-?\d+)? *$/i;

/** One text of several. Lines that are none of the format are left out. */
export function mergeExpositions(all: readonly Exposition[]): string {
  const metrics = new Map<string, Described>();
  for (const { text, labels } of all) {
    const own = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
    // Samples follow the TYPE of their metric, with a suffix where it is a histogram or a summary.
    let current = '';
    for (const line of text.split('\n')) {
      const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) ?(.*)$/.exec(line);
      if (comment) {
        const [, what, name, rest] = comment as unknown as [string, 'HELP' | 'TYPE', string, string];
        current = name;
        const metric = metricOf(metrics, name);
        if (what === 'HELP') metric.help ??= rest;
        else metric.type ??= rest;
        continue;
      }
      const sample = withLabels(line, own);
      if (sample === null) continue;
      const of = isOf(current, sample.name) ? current : sample.name;
      metricOf(metrics, of).samples.push(sample.line);
    }
  }
  const lines = [...metrics].flatMap(([name, { help, type, samples }]) =>
    samples.length === 0
      ? []
      : [
          ...(help === null ? [] : [`# HELP ${name} ${help}`]),
          ...(type === null ? [] : [`# TYPE ${name} ${type}`]),
          ...samples,
        ],
  );
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function metricOf(metrics: Map<string, Described>, name: string): Described {
  const known = metrics.get(name) ?? { help: null, type: null, samples: [] };
  metrics.set(name, known);
  return known;
}

const isOf = (metric: string, sample: string): boolean =>
  metric !== '' && ['', '_bucket', '_sum', '_count'].some((suffix) => sample === `${metric}${suffix}`);

/** The sample with more labels before its own; null for what is no sample. */
function withLabels(line: string, more: readonly string[]): { name: string; line: string } | null {
  const [name] = NAME.exec(line) ?? [];
  if (name === undefined) return null;
  const labels = labelsAt(line, name.length);
  if (labels === null || !VALUE.test(line.slice(labels.end))) return null;
  const all = [...more, ...(labels.text === '' ? [] : [labels.text])];
  const block = all.length === 0 ? '' : `{${all.join(',')}}`;
  return { name, line: `${name}${block}${line.slice(labels.end)}` };
}

const LABEL = /\s*[a-zA-Z_][a-zA-Z0-9_]*\s*=\s*"(?:[^"\\]|\\.)*"\s*(?:,|(?=\}))/y;

/** The labels that stand at a place of a line, without their braces, and where they end; null for a block that is none. */
function labelsAt(line: string, from: number): { text: string; end: number } | null {
  if (line[from] !== '{') return { text: '', end: from };
  let at = from + 1;
  while (line[at] !== '}') {
    LABEL.lastIndex = at;
    if (!LABEL.test(line)) return null;
    at = LABEL.lastIndex;
  }
  return { text: line.slice(from + 1, at).replace(/,\s*$/, ''), end: at + 1 };
}

const escaped = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
