import { expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import { Speakers } from '../../../activities/rollout/speakers.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { loadModelFiles } from '../../../store/training/checkpoints.ts';
import { openTestStore } from '../../support/test-store.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

const { store } = await openTestStore();
const signal = new AbortController().signal;
const environments = inThisProcess([calculatorEnvironment()]);
const curriculum = createCurriculum({ store, environments });
const { model: shape, ...tiny } = tinySpec();

/** Checkpoint 0 of a run from scratch, and what its policy reads before a task. */
async function begun(run: string, dialect?: object) {
  const spec = { ...tiny, model: { ...shape, ...(dialect && { dialect }) } };
  const { model } = await curriculum.openRun({ spec, workflowId: run, firstExecutionRunId: run }, signal);
  const arms = [{ environment: 'calculator', level: 1 }];
  const ref = await curriculum.initializeModel(
    { run, model, seed: 1, arms, maxCompletionTokens: 40 },
    signal,
  );
  const files = await loadModelFiles(store, ref, { signal });
  const { tokenizer, dialectFor } = new Speakers().of(files);
  const prompt = dialectFor(environments.get('calculator')!).promptTokens([{ role: 'user', content: '1+2' }]);
  return { model, files, text: tokenizer.decode(prompt), tokens: prompt.length };
}

test('a model from scratch reads what its tools are where the spec says so, and its tokenizer knows those words', async () => {
  const plain = await begun('plain');
  expect(plain.text).toBe('<|im_start|>user\n1+2<|im_end|>\n<|im_start|>assistant\n');
  expect(plain.model).not.toHaveProperty('dialect');
  const recorded = new TextDecoder().decode(plain.files.get('tokenizer_config.json'));
  expect(JSON.parse(recorded)).toMatchObject({ gradus_dialect: { name: 'gradus' } });
  expect(recorded).not.toContain('describeTools');

  const described = await begun('described', { name: 'gradus', describeTools: true });
  expect(described.text).toMatch(
    /^<\|im_start\|>system\nTools:\n\{"name":"calculator","description":"[^\n]+","parameters":\{[^\n]+\}<\|im_end\|>\n<\|im_start\|>user\n1\+2<\|im_end\|>\n<\|im_start\|>assistant\n$/,
  );
  expect(described.tokens).toBeLessThan(described.text.length / 4);

  // Whoever goes on from it speaks as it does.
  const { model } = await curriculum.openRun(
    { spec: { ...tiny, model: { from: 'described' } }, workflowId: 'later', firstExecutionRunId: 'later' },
    signal,
  );
  const next = await curriculum.initializeModel(
    { run: 'later', model, seed: 1, arms: [], maxCompletionTokens: 40 },
    signal,
  );
  const { dialectFor, tokenizer } = new Speakers().of(await loadModelFiles(store, next, { signal }));
  const [environment] = environments.values();
  expect(tokenizer.decode(dialectFor(environment!).promptTokens([{ role: 'user', content: '1+2' }]))).toBe(
    described.text,
  );
});
