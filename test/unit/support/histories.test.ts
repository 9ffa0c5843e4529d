import { defaultPayloadConverter } from '@temporalio/common';
import { expect, test } from 'vitest';
import { payloadsIn, resultOf, signalsOf } from '../../support/histories.ts';
import type { History } from '../../support/histories.ts';

const payload = (value: unknown) => defaultPayloadConverter.toPayload(value);

const history = {
  events: [
    {
      workflowExecutionStartedEventAttributes: {
        input: { payloads: [payload('spec'), payload([1, 2])] },
        searchAttributes: { indexedFields: { GradusRun: payload('run') } },
      },
    },
    {
      eventTime: { seconds: 12, nanos: 500_000_000 },
      workflowExecutionSignaledEventAttributes: {
        signalName: 'stepReported',
        input: { payloads: [payload({ step: 1 })] },
      },
    },
    { workflowExecutionSignaledEventAttributes: { signalName: 'pause' } },
    { workflowExecutionCompletedEventAttributes: { result: { payloads: [payload({ end: 'completed' })] } } },
  ],
} as unknown as History;

test('payloads are found wherever they stand', () => {
  const texts = [...payloadsIn(history)].map(({ data }) => Buffer.from(data!).toString());
  expect(texts).toEqual(['"spec"', '[1,2]', '"run"', '{"step":1}', '{"end":"completed"}']);
});

test('signals come with their time, results as they were returned', () => {
  expect(signalsOf(history, 'stepReported')).toEqual([{ at: 12_500, value: { step: 1 } }]);
  expect(resultOf(history)).toEqual({ end: 'completed' });
  expect(resultOf({ events: history.events!.slice(0, 3) })).toBeUndefined();
});
