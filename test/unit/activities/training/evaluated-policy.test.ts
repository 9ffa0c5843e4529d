import { expect, test } from 'vitest';
import { evaluatedPolicy } from '../../../../activities/training/evaluated-policy.ts';
import type { ServedPolicySpec } from '../../../../core/schema/policy.ts';
import { WEIGHTS_ELSEWHERE } from '../../../../store/training/manifest.ts';
import type { CheckpointManifest } from '../../../../store/training/manifest.ts';

const file = (sha256: string) => ({ key: 'k', sha256, bytes: 1 });
const manifestOf = (files: object, more: object = {}) =>
  ({ run: 'small', files, ...more }) as unknown as CheckpointManifest;
const whole = manifestOf({ 'model.safetensors': file('a'.repeat(64)) });
const tokenizer = (digest: string) => manifestOf({ [WEIGHTS_ELSEWHERE]: file(digest.repeat(64)) });
const policy = {
  kind: 'http',
  server: 'vllm',
  urls: ['http://h'],
  folder: '',
} as unknown as ServedPolicySpec;
const answer = { model: 'm', says: { root: '/m', checksum: 'c' } };

test('the version of a model that servers hold follows from all that is known of it', () => {
  const versionOf = (...of: Parameters<typeof evaluatedPolicy>) =>
    evaluatedPolicy(...of).policy!.held!.version;
  const version = versionOf(policy, tokenizer('a'), answer);
  expect(version).toMatch(/^[0-9a-f]{64}$/);
  expect(versionOf(policy, tokenizer('a'), answer)).toBe(version);
  const others = [
    versionOf(policy, tokenizer('b'), answer),
    versionOf(policy, tokenizer('a'), { ...answer, model: 'n' }),
    versionOf(policy, tokenizer('a'), { ...answer, says: { root: '/m' } }),
    versionOf(policy, tokenizer('a'), { ...answer, says: { root: '/m', checksum: 'd' } }),
  ];
  expect(new Set([version, ...others]).size).toBe(5);
});

test('servers are asked only where they hold the model', () => {
  expect(evaluatedPolicy(policy, tokenizer('a'), undefined)).toEqual({ policy, asks: true });
  const folder = { ...policy, folder: '/shared' };
  expect(evaluatedPolicy(folder, whole, undefined)).toEqual({
    policy: { ...folder, adapters: false },
    asks: false,
  });
  const adapter = manifestOf({}, { base: {} });
  expect(evaluatedPolicy(folder, adapter, undefined).policy!.adapters).toBe(true);
  expect(evaluatedPolicy(undefined, whole, undefined)).toEqual({ asks: false });
});

test('what does not fit is refused, with what to do', () => {
  expect(() => evaluatedPolicy(policy, whole, undefined)).toThrow(/policy\.folder: is missing/);
  expect(() => evaluatedPolicy(undefined, tokenizer('a'), undefined)).toThrow(
    /policy: is missing.*small.*on a server/,
  );
  expect(() => evaluatedPolicy({ ...policy, folder: '/x' }, tokenizer('a'), undefined)).toThrow(
    /leave it out/,
  );
});
