import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { Json } from '../../../core/json/json.ts';
import { tierQueue } from '../../../core/names.ts';
import type { TierAnswer, TierRequest } from '../../../core/tier-contract.ts';
import { moleculesEnvironment } from '../../../environments/families/molecules/environment.ts';
import type { TierVerifier } from '../../../environments/contract/environment.ts';

// The other side of these files is test/chemistry/test_contract.py.
const FOLDER = path.resolve(import.meta.dirname, '../../golden/tier-contract');
const golden = (name: string): unknown => JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'));
const files = (prefix: string) => readdirSync(FOLDER).filter((name) => name.startsWith(prefix));

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const requestSchema = z.strictObject({
  format: z.literal('gradus.verify/1'),
  verifier: z.string(),
  version: z.string(),
  digest,
  subject: z.json(),
});
const common = {
  format: z.literal('gradus.verdict/1'),
  verifier: z.string(),
  version: z.string(),
  digest,
  spent: z.strictObject({ seconds: z.number().min(0), usd: z.number().min(0) }),
  evidence: z.string().exactOptional(),
};
const figures = z.record(z.string(), z.number());
const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    ...common,
    kind: z.literal('scored'),
    score: z.number().min(0).max(1),
    uncertainty: z.number().exactOptional(),
  }),
  z.strictObject({
    ...common,
    kind: z.literal('measured'),
    values: figures,
    uncertainties: figures.exactOptional(),
  }),
  z.strictObject({ ...common, kind: z.literal('abstained'), type: z.string(), reason: z.string() }),
]);

/** With the keys of objects in order, so that there is one way to write a value. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const keys = Object.keys(value).toSorted((a, b) => (a < b ? -1 : 1));
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key]!)}`).join(',')}}`;
}

test('there are golden files of every kind', () => {
  expect(files('request-').length).toBeGreaterThanOrEqual(4);
  const kinds = files('answer-').map((name) => answerSchema.parse(golden(name)).kind);
  expect(new Set(kinds)).toEqual(new Set(['scored', 'measured', 'abstained']));
});

test.each(files('request-'))('%s is a request, and the same after a round trip', (name) => {
  const request = requestSchema.parse(golden(name));
  expectTypeOf(request).toExtend<Omit<TierRequest, 'subject'>>();
  expect(request).toEqual(golden(name));
  expect(JSON.parse(JSON.stringify(request))).toEqual(golden(name));
});

test.each(files('answer-'))('%s is an answer, and the same after a round trip', (name) => {
  const answer = answerSchema.parse(golden(name));
  expectTypeOf(answer).toExtend<TierAnswer>();
  expect(JSON.parse(JSON.stringify(answer))).toEqual(golden(name));
});

test('digests are those of the subjects', () => {
  for (const name of files('request-').filter((file) => file !== 'request-unicode.json')) {
    const request = requestSchema.parse(golden(name));
    const sha256 = createHash('sha256').update(canonical(request.subject));
    expect(request.digest, name).toBe(sha256.digest('hex'));
  }
});

test('the queues that Python serves are those that the verifiers of molecules are asked on', () => {
  const queues = golden('queues.json') as Record<string, string>;
  const pools = moleculesEnvironment().verifiers.filter(
    (verifier): verifier is TierVerifier => verifier.tier !== 'fast' && verifier.served.by === 'pool',
  );
  const asked = pools.map(({ tier, served }) => [
    tier,
    tierQueue(tier, served.by === 'pool' ? served.pool : ''),
  ]);
  expect(Object.fromEntries(asked)).toEqual(queues);
});
