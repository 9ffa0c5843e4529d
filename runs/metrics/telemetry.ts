import { ValueType } from '@opentelemetry/api';
import type { HrTime } from '@opentelemetry/api';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { emptyResource } from '@opentelemetry/resources';
import { AggregationTemporality, DataPointType } from '@opentelemetry/sdk-metrics';
import type { MetricData, MetricProducer, ScopeMetrics } from '@opentelemetry/sdk-metrics';
import type { Family } from './families.ts';

const SCOPE = { name: 'gradus' };
/** Counters count from when their run began, which whoever reads them need not know. */
const SINCE: HrTime = [0, 0];

/** Metrics as OpenTelemetry has them, as they are at `at`, epoch milliseconds. */
function scopeMetrics(families: readonly Family[], at: number): ScopeMetrics {
  const endTime: HrTime = [Math.floor(at / 1000), Math.round((at % 1000) * 1e6)];
  return {
    scope: SCOPE,
    metrics: families.map(({ name, help, unit, kind, samples }): MetricData => {
      const common = {
        descriptor: { name, description: help, unit, valueType: ValueType.DOUBLE },
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPoints: samples.map(({ labels, value }) => ({
          startTime: SINCE,
          endTime,
          attributes: labels,
          value,
        })),
      };
      return kind === 'counter'
        ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true }
        : { ...common, dataPointType: DataPointType.GAUGE };
    }),
  };
}

/** In Prometheus's text format (0.0.4). */
export const prometheusText = (families: readonly Family[]): string =>
  // Units are in the names; of a line for them only OpenMetrics knows.
  new PrometheusSerializer('', false, undefined, true, true).serialize({
    resource: emptyResource(),
    scopeMetrics: [
      scopeMetrics(
        families.map((family) => ({ ...family, unit: '' })),
        0,
      ),
    ],
  });

/** Makes a metric reader of OpenTelemetry collect what `read` gives, as it is then: what is over has no samples left. */
export const producerOf = (read: () => Promise<Family[]>): MetricProducer => ({
  collect: async () => ({
    resourceMetrics: {
      resource: emptyResource(),
      scopeMetrics: [scopeMetrics(await read(), Date.now())],
    },
    errors: [],
  }),
});
