// Policies on servers, with the real vLLM on processors. `--only contract` or `--only run` does a part of it, and `--dtype
// bfloat16` has the run's servers hold and compute bfloat16. A JSON summary is the only output on stdout. Run: npm run setup:vllm, then npm run parity:vllm
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { ensureVllm } from '../../../cli/setup/vllm-python.ts';
import { contractOf } from './contract.ts';
import { curriculumOf } from './curriculum.ts';

const { values } = parseArgs({
  options: { only: { type: 'string' }, dtype: { type: 'string', default: 'float32' } },
});
const dtype = z.enum(['float32', 'bfloat16']).parse(values.dtype);
const say = (text: string): void => void process.stderr.write(`parity:vllm: ${text}\n`);
const environment = await ensureVllm(say);
const folder = await mkdtemp(path.join(tmpdir(), 'gradus-parity-vllm-'));
let held = false;
try {
  const contract = values.only === 'run' ? undefined : await contractOf(environment, folder, say);
  const run = values.only === 'contract' ? undefined : await curriculumOf(environment, folder, dtype, say);
  held = contract?.held !== false && run?.held !== false;
  process.stdout.write(`${JSON.stringify({ vllm: '0.32.0+cpu', held, contract, run }, null, 2)}\n`);
} finally {
  if (held) await rm(folder, { recursive: true, force: true });
  else say(`what is left to look at: ${folder}`);
}
process.exitCode = held ? 0 : 1;
