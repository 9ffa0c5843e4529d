import { expect, test } from 'vitest';
import { sdkMetrics } from '../../../workers/sdk-metrics.ts';

test('a worker exports what Temporal’s SDK measures, shows it, or does neither, as its variables say', () => {
  expect(sdkMetrics({})).toEqual({});
  expect(sdkMetrics({ GRADUS_WORKER_METRICS: '127.0.0.1:9464' })).toMatchObject({
    metrics: { prometheus: { bindAddress: '127.0.0.1:9464', countersTotalSuffix: true } },
  });
  const otlp = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', GRADUS_WORKER_METRICS: '127.0.0.1:9464' };
  expect(sdkMetrics(otlp)).toMatchObject({
    metrics: { otel: { url: 'http://c:4318/v1/metrics', http: true } },
  });
  expect(() => sdkMetrics({ GRADUS_WORKER_METRICS: '9464' })).toThrow(/give HOST:PORT/);
});
