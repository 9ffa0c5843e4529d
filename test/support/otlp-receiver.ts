import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';

// A collector as OTLP over HTTP describes it (opentelemetry-proto 1.x), which decodes what it is sent: both encodings.

/** The part of opentelemetry/proto/collector/metrics/v1 that is looked at. */
const PROTO = `
syntax = "proto3";
message ExportMetricsServiceRequest { repeated ResourceMetrics resource_metrics = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeMetrics { repeated Metric metrics = 2; }
message Metric {
  string name = 1;
  string description = 2;
  string unit = 3;
  Points gauge = 5;
  Points sum = 7;
  Histogram histogram = 9;
}
message Histogram { repeated HistogramPoint data_points = 1; int32 aggregation_temporality = 2; }
message HistogramPoint { fixed64 count = 4; double sum = 5; repeated KeyValue attributes = 9; }
message Points { repeated Point data_points = 1; int32 aggregation_temporality = 2; bool is_monotonic = 3; }
message Point { fixed64 time_unix_nano = 3; double as_double = 4; repeated KeyValue attributes = 7; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { string string_value = 1; }
`;
const request = protobuf.parse(PROTO, { keepCase: false }).root.lookupType('ExportMetricsServiceRequest');

interface KeyValue {
  key: string;
  value: { stringValue?: string };
}
interface Points {
  dataPoints: { attributes?: KeyValue[]; asDouble?: number }[];
  isMonotonic?: boolean;
}
interface Body {
  resourceMetrics?: {
    resource?: { attributes?: KeyValue[] };
    scopeMetrics?: {
      metrics?: { name: string; description?: string; gauge?: Points; sum?: Points; histogram?: Points }[];
    }[];
  }[];
}

export interface Received {
  path: string;
  contentType: string;
  headers: IncomingHttpHeaders;
  /** `service.name` and the like. */
  resource: Record<string, string>;
  /** By name; a metric's points with their attributes. */
  metrics: Map<string, { attributes: Record<string, string>; value: number | undefined }[]>;
}

export interface OtlpReceiver {
  /** `http://127.0.0.1:PORT` */
  endpoint: string;
  received: Received[];
  close(): Promise<void>;
}

const plain = (pairs: readonly KeyValue[] = []): Record<string, string> =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, value.stringValue ?? '']));

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const received: Received[] = [];
  const server = createServer((message, response) => {
    const parts: Buffer[] = [];
    message.on('data', (part: Buffer) => parts.push(part));
    message.on('end', () => {
      const contentType = message.headers['content-type'] ?? '';
      const bytes = Buffer.concat(parts);
      const whole = message.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
      const isJson = contentType.startsWith('application/json');
      const body = (
        isJson ? JSON.parse(whole.toString()) : request.toObject(request.decode(whole), { longs: String })
      ) as Body;
      for (const { resource, scopeMetrics = [] } of body.resourceMetrics ?? []) {
        const metrics: Received['metrics'] = new Map();
        for (const { name, gauge, sum, histogram } of scopeMetrics.flatMap((scope) => scope.metrics ?? [])) {
          const points = (gauge ?? sum ?? histogram)?.dataPoints ?? [];
          metrics.set(
            name,
            points.map(({ attributes, asDouble }) => ({ attributes: plain(attributes), value: asDouble })),
          );
        }
        received.push({
          path: message.url ?? '',
          contentType,
          headers: message.headers,
          resource: plain(resource?.attributes),
          metrics,
        });
      }
      response.setHeader('content-type', contentType);
      response.end(isJson ? '{}' : '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
