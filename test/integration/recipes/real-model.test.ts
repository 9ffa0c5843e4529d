import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { demonstrationCorpus } from '../../../activities/training/corpus.ts';
import { quickly } from '../../../bench/recipes/quickly.ts';
import { SPECIAL_TOKENS } from '../../../engine/dialect/gradus/special-tokens.ts';
import { trainTokenizer } from '../../../engine/tokenizer/train-bpe.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { readRecipe } from '../../../recipes/recipe.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { DONE } from '../../support/ended.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { writeTinyQwen } from '../../support/tiny-qwen.ts';

let installation: TestInstallation;
let scratch: string;

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-recipe-'));
  installation = await startTestInstallation();
  const tokenizer = trainTokenizer(demonstrationCorpus([calculatorEnvironment()], 50), 400, SPECIAL_TOKENS);
  await writeTinyQwen(path.join(scratch, 'model'), JSON.stringify(tokenizer), { maxPositions: 256 });
  const store = await ObjectStore.connect(installation.settings.store);
  await importModel(store, path.join(scratch, 'model'), 'my-model').finally(() => store.close());
});
afterAll(async () => {
  await installation?.remove();
  await rm(scratch, { recursive: true, force: true });
});

test("a model in Hugging Face's layout takes the warm start's place by the two lines that the page names", async () => {
  const { runs, readme } = await readRecipe('r1-grpo');
  const { spec } = runs.find(({ name }) => name === 'treatment')!;
  const lines = [...readme.matchAll(/^ +("[^"]+": )(\S+) +in place of (\S+)$/gm)];
  expect(lines).toHaveLength(2);
  let text = JSON.stringify(quickly(spec), undefined, 2);
  for (const [, field, now, before] of lines) {
    expect(text).toContain(`${field}${before}`);
    text = text.replace(`${field}${before}`, `${field}${now}`);
  }
  const handle = await installation.runs.start('treatment', JSON.parse(text));
  const { end, stages, before, after } = await handle.result();
  expect(end).toEqual(DONE);
  expect(stages).toMatchObject([{ name: 'rl', steps: 2 }]);
  expect([before, after].every((report) => report !== null)).toBe(true);
});
