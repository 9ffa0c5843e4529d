// Where OpenTelemetry's variables say that metrics go. Read here for whatever does not read them itself.

export interface OtlpSettings {
  /** With the path for metrics. */
  url: string;
  /** Name and port of the URL: it may have a password. */
  host: string;
  protocol: string;
  headers: Record<string, string>;
  intervalMs: number;
  timeoutMs: number;
}

/** What OpenTelemetry's variables say of metrics; null where they ask for none. */
export function otlpOf(env: NodeJS.ProcessEnv): OtlpSettings | null {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_METRICS_EXPORTER'] === 'none')
    return null;
  const own = env['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'];
  const common = env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  const written = own ?? (common && `${common.replace(/\/$/, '')}/v1/metrics`);
  if (!written || !URL.canParse(written)) return null;
  const intervalMs = numberOf(env['OTEL_METRIC_EXPORT_INTERVAL'], 60_000);
  const timeoutMs = numberOf(env['OTEL_METRIC_EXPORT_TIMEOUT'], 30_000);
  return {
    url: written,
    host: new URL(written).host,
    protocol:
      env['OTEL_EXPORTER_OTLP_METRICS_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL'] ?? 'http/protobuf',
    headers: {
      ...headersOf(env['OTEL_EXPORTER_OTLP_HEADERS']),
      ...headersOf(env['OTEL_EXPORTER_OTLP_METRICS_HEADERS']),
    },
    intervalMs,
    // A reader refuses to wait longer than until the next time.
    timeoutMs: Math.min(timeoutMs, intervalMs),
  };
}

function numberOf(text: string | undefined, otherwise: number): number {
  const number = Number(text);
  return text !== undefined && number >= 1 ? number : otherwise;
}

/** `name=value,other=value`, percent-encoded. */
function headersOf(text = ''): Record<string, string> {
  const pairs = text.split(',').flatMap((part): [string, string][] => {
    const at = part.indexOf('=');
    if (at < 1) return [];
    return [[part.slice(0, at).trim(), decoded(part.slice(at + 1).trim())]];
  });
  return Object.fromEntries(pairs);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
