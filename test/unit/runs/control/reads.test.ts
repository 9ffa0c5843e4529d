import { expect, test } from 'vitest';
import { reads } from '../../../../runs/control/delete-run.ts';
import { parseSpec } from '../../../../spec/parse-spec.ts';
import { tinySpec } from '../../../support/tiny-spec.ts';
import { environments } from '../../spec/problems-of.ts';

test('a run that follows another one needs what that one has stored', () => {
  const tiny = tinySpec();
  const collect = { kind: 'asynchronous', follow: 'followed' };
  const rl = { ...tiny.stages[1], algorithm: { kind: 'grpo', importanceCap: 2 }, collect };
  const written = { ...tiny, stages: [tiny.stages[0], rl] };
  const { stages } = parseSpec(written, 'follows', environments);
  const spec = { model: { kind: 'scratch' } as never, stages };
  expect(reads(spec, 'followed')).toBe(true);
  expect(reads(spec, 'another')).toBe(false);
});
