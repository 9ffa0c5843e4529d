// Models go from here to transformers and back: what we write loads there and continues greedily with the same tokens.
// With `--fixtures` test/fixtures/models is written anew first, which the unit tests then hold learner and decoder to.
// Run: npm run parity [-- --fixtures] [CASE …]
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { withDtype } from '../../../engine/hf-dtype.ts';
import { writeHfWeights } from '../../../engine/hf-weights.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { tokenMask } from '../../../engine/token-mask.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';
import { cases, fixture, largestDifference, PROMPT } from '../../unit/engine/parity/fixture.ts';

const here = import.meta.dirname;
// PEFT's environment has transformers: a second one would be gigabytes of the same.
const requirements = path.join(here, '../peft/requirements.txt');
const { python } = await ensurePythonEnvironment('parity-peft', requirements, console.log);
const wanted = process.argv.slice(2).filter((argument) => argument !== '--fixtures');
const unknown = wanted.filter((name) => !cases.includes(name));
if (unknown.length > 0) throw new Error(`no case ${unknown.join(', ')}; there are ${cases.join(', ')}`);

if (process.argv.includes('--fixtures')) {
  const target = path.join(here, '../../fixtures/models');
  execFileSync(python, [path.join(here, 'make_fixtures.py'), target], { stdio: 'inherit' });
}

interface Reading {
  class: string;
  missing: string[];
  unexpected: string[];
  logits: number[];
  greedy: number[];
}

for (const name of wanted.length > 0 ? wanted : cases) {
  const { config, weights, files, tokens, logits, greedy } = await fixture(name);
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-parity-'));
  try {
    // A model of the default family is written as one that began here; the others keep their own files.
    const own = config.biases === undefined && !config.queryKeyNorm && config.ropeScaling === undefined;
    const text = new TextDecoder().decode(files.get('tokenizer.json'));
    const written = new Map([...files, ...(own ? newModelFiles(config, text) : [])]);
    written.set('config.json', withDtype(written.get('config.json')!, 'F32'));
    for (const [file, bytes] of written) await writeFile(path.join(folder, file), bytes);
    await writeHfWeights(folder, config, weights, { dtype: 'F32', maxShardBytes: 40_000 });
    const prompt = JSON.stringify(tokens.slice(0, PROMPT));
    const output = execFileSync(
      python,
      [path.join(here, 'read_export.py'), folder, prompt, String(greedy.length)],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const reading = JSON.parse(output) as Reading;
    const known = logits.subarray((PROMPT - 1) * config.vocabSize, PROMPT * config.vocabSize);
    // transformers knows of no mask.
    const mask = tokenMask(config);
    const read = mask ? reading.logits.map((logit, i) => Math.fround(logit + mask[i]!)) : reading.logits;
    const difference = largestDifference(read, known);
    const same =
      (mask !== undefined || isDeepStrictEqual(reading.greedy, greedy)) &&
      reading.missing.length + reading.unexpected.length === 0 &&
      difference < 1e-4;
    console.log(
      `${same ? 'same' : 'DIFFERS'}  ${name} (${reading.class}${own ? ', our own config.json' : ''}): logits ${difference.toExponential(1)}`,
    );
    if (!same) {
      console.log({ ...reading, logits: undefined, expected: greedy });
      process.exitCode = 1;
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
