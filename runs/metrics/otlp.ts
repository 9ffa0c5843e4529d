import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { printable } from '../../core/printable.ts';
import type { Family } from './families.ts';
import { otlpOf } from './otlp-settings.ts';
import { producerOf } from './telemetry.ts';

export interface OtlpExport {
  /** Where to, without what is secret of it. */
  description: string;
  /** Exports once more, and ends. */
  close(): Promise<void>;
}

/**
 * Exports by OTLP over HTTP, in JSON, if OpenTelemetry's variables say where to (OTEL_EXPORTER_OTLP_METRICS_ENDPOINT or
 * OTEL_EXPORTER_OTLP_ENDPOINT); else null. Headers, time-outs and the rest are read by the exporter itself. `say` is told
 * what goes wrong.
 */
export function exportByOtlp(
  read: () => Promise<Family[]>,
  say: (text: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): OtlpExport | null {
  const where = otlpOf(env);
  if (where === null) return null;
  if (where.protocol === 'grpc') {
    say(
      "metrics of runs are not exported: OTEL_EXPORTER_OTLP_PROTOCOL asks for gRPC, and they are sent over HTTP only. Set OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/json and a collector's HTTP endpoint, usually of port 4318",
    );
    return null;
  }
  const tell = (...parts: unknown[]): void => say(`metrics: ${printable(String(parts[0]))}`);
  const quiet = (): void => undefined;
  diag.setLogger(
    { error: tell, warn: tell, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new MeterProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'gradus' }))
      .merge(detectResources({ detectors: [envDetector] })),
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter(),
        metricProducers: [producerOf(read)],
        exportIntervalMillis: where.intervalMs,
        exportTimeoutMillis: where.timeoutMs,
      }),
    ],
  });
  return { description: where.host, close: () => provider.shutdown() };
}
