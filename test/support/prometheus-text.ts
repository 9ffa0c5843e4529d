/** A metric as a scraper understands it. */
export interface ScrapedMetric {
  help: string;
  type: string;
  samples: { name: string; labels: Record<string, string>; value: number }[];
}

/**
 * Reads Prometheus's text format (0.0.4) as strictly as the reference does, and the conventions besides: throws for a
 * sample without a TYPE, a metric that stands in two places, a series that is there twice, a counter without `_total`, a
 * histogram whose buckets do not add up.
 */
export function readPrometheusText(text: string): Map<string, ScrapedMetric> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const metrics = new Map<string, ScrapedMetric>();
  const series = new Set<string>();
  let current = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (comment) {
      const [, what, name, rest] = comment as unknown as [string, string, string, string];
      if (what === 'HELP') {
        if (metrics.has(name)) throw new Error(`${name} is described twice`);
        metrics.set(name, { help: rest, type: '', samples: [] });
      } else {
        if (!/^(counter|gauge|histogram|summary|untyped)$/.test(rest)) throw new Error(`no type: ${line}`);
        const metric = metrics.get(name);
        if (!metric || metric.type !== '') throw new Error(`TYPE without HELP, or twice: ${line}`);
        metric.type = rest;
        if (rest === 'counter' && !name.endsWith('_total'))
          throw new Error(`${name} counts, and has no _total`);
      }
      current = name;
      continue;
    }
    if (line.startsWith('#')) continue;
    const sample =
      /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\S+)$/.exec(
        line,
      );
    if (!sample) throw new Error(`no sample: ${line}`);
    const [, name, block = '', written] = sample as unknown as [string, string, string | undefined, string];
    const metric = metrics.get(current);
    if (
      !metric?.type ||
      !(
        name === current ||
        (/^(histogram|summary)$/.test(metric.type) &&
          /^_(bucket|sum|count)$/.test(name.slice(current.length)))
      )
    ) {
      throw new Error(`${name} stands below ${current}`);
    }
    const labels = Object.fromEntries(
      [...block.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)].map(([, label, value]) => [
        label!,
        value!.replaceAll('\\n', '\n').replaceAll('\\"', '"').replaceAll('\\\\', '\\'),
      ]),
    );
    const value = Number(written.replace(/^([+-]?)Inf$/, '$1Infinity'));
    if (Number.isNaN(value) && written !== 'NaN') throw new Error(`no number: ${line}`);
    const key = JSON.stringify([name, Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))]);
    if (series.has(key)) throw new Error(`twice: ${line}`);
    series.add(key);
    metric.samples.push({ name, labels, value });
  }
  return metrics;
}
