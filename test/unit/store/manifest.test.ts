import { expect, test } from 'vitest';
import { parseManifest, policyVersion } from '../../../store/training/manifest.ts';

const FOLDER = 'runs/run/checkpoints/000001-aaaaaaaaaaaa';
const blob = (key: string) => ({ key, sha256: 'a'.repeat(64), bytes: 1 });
const NAMES = ['config.json', 'tokenizer.json', 'optimizer.safetensors', 'model.safetensors'];
const filesOf = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, blob(`${FOLDER}/${name}`)]));
const manifest = (more: object) => ({
  format: 'gradus.checkpoint/1',
  run: 'run',
  stage: 'rl',
  step: 1,
  backend: 'none',
  updates: 0,
  createdBy: 'test',
  files: filesOf(NAMES),
  ...more,
});
const parse = (more: object) => parseManifest(manifest(more), `${FOLDER}/manifest.json`);
const invalid = expect.objectContaining({ boundary: 'store', type: 'invalid-manifest', retryable: false });

test('a manifest names the files of its own folder', () => {
  const files = filesOf([...NAMES, 'chat_template.jinja']);
  expect(Object.keys(parse({ files }).files)).toContain('chat_template.jinja');
});

test('weights lie in one file, or in all shards with their index', () => {
  const shards = [1, 2, 3].map((n) => `model-0000${n}-of-00003.safetensors`);
  const small = NAMES.filter((name) => name !== 'model.safetensors');
  const index = 'model.safetensors.index.json';
  const { files } = parse({ files: filesOf([...small, ...shards, index]) });
  const version = policyVersion({ files });
  expect(version).toHaveLength(64);
  const other = { ...files, [shards[1]!]: { ...files[shards[1]!]!, sha256: 'b'.repeat(64) } };
  expect(policyVersion({ files: other })).not.toBe(version);
  for (const missing of [...shards, index]) {
    const rest = [...small, ...shards, index].filter((name) => name !== missing);
    expect(() => parse({ files: filesOf(rest) })).toThrow(invalid);
  }
});

// `gradus export` writes each file under its name, and retention deletes what the keys name.
test.each([
  ['a name that leads out of a folder', '../../escaped', `${FOLDER}/x`],
  ['an absolute name', '/etc/escaped', `${FOLDER}/x`],
  ['a name in a folder', 'a/b.json', `${FOLDER}/a/b.json`],
  ['a name that is a folder', '..', `${FOLDER}/x`],
  ['a hidden name', '.bashrc', `${FOLDER}/.bashrc`],
  ["a name with another system's separator", '..\\escaped', `${FOLDER}/x`],
  ['the file of another run', 'notes.txt', 'runs/other/checkpoints/000001-bbbbbbbbbbbb/model.safetensors'],
  ['a key that is none', 'notes.txt', `${FOLDER}/../x`],
])('%s is refused', (_, name, key) => {
  expect(() => parse({ files: { ...filesOf(NAMES), [name]: blob(key) } })).toThrow(invalid);
});

test('a parent with weights that are no digest is refused', () => {
  const weights = '../../../etc';
  expect(() => parse({ parent: { manifest: blob(`${FOLDER}/manifest.json`), weights, step: 0 } })).toThrow(
    invalid,
  );
});
