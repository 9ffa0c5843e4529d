import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { initialWeights } from '../../../engine/learner/initial-weights.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { smallConfig } from '../../support/store/fixtures.ts';
import { tokenizer, tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { openTestStore } from '../../support/test-store.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const { server, store } = await openTestStore();

beforeAll(async () => {
  const { vocabSize } = tokenizer;
  const config = { ...smallConfig, vocabSize, headSize: 16, maxPositions: 96 };
  await saveCheckpoint(store, {
    run: 'talker',
    stage: 'test',
    step: 0,
    backend: 'none',
    createdBy: 'test',
    state: {
      config,
      weights: initialWeights(config, 1),
      firstMoments: new Map(),
      secondMoments: new Map(),
      updates: 0,
    },
    files: newModelFiles(config, tokenizerJson),
  });
  await importModel(store, path.join(root, 'test/fixtures/models/llama-tied'), 'mute');
});

function generate(...args: string[]) {
  const tsx = createRequire(import.meta.url).resolve('tsx');
  const command = ['--import', tsx, path.join(root, 'cli/gradus.ts'), 'generate', ...args];
  return promisify(execFile)(process.execPath, command, { env: server.environment() });
}

test('a checkpoint answers a prompt, the same for the same seed, within its limits', async () => {
  const ask = (seed: string) =>
    generate(
      'talker',
      '--prompt',
      'What is 2 + 3?',
      '--environment',
      'calculator',
      '--max-tokens',
      '24',
      '--seed',
      seed,
    );
  const [one, again, other] = await Promise.all([ask('1'), ask('1'), ask('2')]);
  const said = ({ stdout }: { stdout: string }) => stdout.replace(/, \d+ a second\)/, ')');
  expect(said(one)).toBe(said(again));
  expect(said(one)).not.toBe(said(other));
  expect(one.stdout).toMatch(/\((answered: .*|cut: no more tokens); \d+ tokens, \d+ a second\)\n$/);
});

test.each<[string, string[], RegExp]>([
  ['a run that is not there', ['nobody', '--prompt', 'x'], /"nobody" has no checkpoint/],
  [
    'an unknown environment',
    ['talker', '--prompt', 'x', '--environment', 'calculater'],
    /did you mean "calculator".*GRADUS_ENVIRONMENTS or package\.json names its module/,
  ],
  [
    'a prompt that fills the model',
    ['talker', '--prompt', 'far too long '.repeat(40)],
    /holds 96: shorten it/,
  ],
  ['a model that speaks no dialect', ['mute', '--prompt', 'x'], /no chat template/],
  ['a temperature that is none', ['talker', '--temperature', 'hot'], /give a number from 0 to 100/],
  ['half a token', ['talker', '--top-k', '2.5'], /give a whole number from 0/],
])('%s is refused in a sentence', async (_, args, message) => {
  await expect(generate(...args)).rejects.toMatchObject({
    stderr: expect.stringMatching(message) as string,
  });
});
