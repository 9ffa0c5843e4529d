import type { TelemetryOptions } from '@temporalio/worker';
import { GradusError } from '../core/errors.ts';
import { otlpOf } from '../runs/metrics/otlp-settings.ts';

/** HOST:PORT where a worker process shows the metrics of Temporal's SDK in Prometheus's format. */
export const WORKER_METRICS = 'GRADUS_WORKER_METRICS';

/**
 * What becomes of the metrics that Temporal's SDK measures in a worker: exported by OTLP where OpenTelemetry's variables
 * say where to, else shown at GRADUS_WORKER_METRICS, else nothing. Throws GradusError('infra', 'settings').
 */
export function sdkMetrics(env: NodeJS.ProcessEnv): Pick<TelemetryOptions, 'metrics'> {
  const otlp = otlpOf(env);
  if (otlp !== null) {
    const { url, protocol, headers, intervalMs } = otlp;
    return {
      metrics: {
        otel: {
          url,
          http: protocol !== 'grpc',
          headers,
          metricsExportInterval: intervalMs,
          useSecondsForDurations: true,
        },
      },
    };
  }
  const bindAddress = env[WORKER_METRICS];
  if (bindAddress === undefined || bindAddress === '') return {};
  if (!/^(\[[0-9a-f:]+\]|[^:/\s]+):\d{1,5}$/i.test(bindAddress)) {
    throw new GradusError(
      'infra',
      'settings',
      `${WORKER_METRICS} is ${JSON.stringify(bindAddress)}: give HOST:PORT, such as 127.0.0.1:9464`,
    );
  }
  return {
    metrics: {
      prometheus: { bindAddress, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true },
    },
  };
}
