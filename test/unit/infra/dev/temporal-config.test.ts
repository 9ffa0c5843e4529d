import { expect, test } from 'vitest';
import {
  dynamicConfig,
  TEMPORAL_PORT_NAMES,
  temporalConfig,
  temporalUiConfig,
} from '../../../../infra/dev/temporal-config.ts';
import type { TemporalPorts } from '../../../../infra/dev/temporal-config.ts';

const ports = Object.fromEntries(TEMPORAL_PORT_NAMES.map((name, i) => [name, 7000 + i])) as TemporalPorts;

test('every address in the configuration is on loopback', () => {
  const texts = [
    JSON.stringify(temporalConfig('/data', ports)),
    JSON.stringify(temporalUiConfig({ temporal: '127.0.0.1:7000', port: 8, namespace: 'default' })),
  ];
  for (const text of texts) {
    expect(text).not.toContain('0.0.0.0');
    expect(text.match(/\d+\.\d+\.\d+\.\d+/g)?.every((address) => address === '127.0.0.1')).toBe(true);
  }
  expect(temporalConfig('/data', ports)).toMatchObject({
    services: { history: { rpc: { bindOnIP: '127.0.0.1', grpcPort: ports.historyGrpc } } },
  });
});

test('each of the four services has two ports of its own', () => {
  expect(new Set(TEMPORAL_PORT_NAMES).size).toBe(8);
});

test('the settings that make tasks go out fast are there', () => {
  expect(dynamicConfig()).toMatchObject({
    'history.transferProcessorMaxPollRPS': [{ value: 500 }],
    'system.enableActivityEagerExecution': [{ value: true }],
    'matching.numTaskqueueReadPartitions': [{ value: 1 }],
    'matching.numTaskqueueWritePartitions': [{ value: 1 }],
  });
  expect(JSON.stringify(temporalConfig('/data', ports))).toContain('"journal_mode":"wal","synchronous":"1"');
});
