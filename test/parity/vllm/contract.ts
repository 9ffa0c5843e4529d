import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Row } from '../../support/policy-server/vllm-contract.ts';
import { vllmContract } from '../../support/policy-server/vllm-contract.ts';
import { writeServedFolders } from '../../support/policy-server/served-folders.ts';
import { RealVllm } from './real-vllm.ts';

/** Nats between two engines in float32, at most. */
const TOLERANCE = 1e-4;

/** The suite that the stand-in server passes, with the real one. */
export async function contractOf(
  environment: string,
  folder: string,
  say: (text: string) => void,
): Promise<{ held: boolean; rows: number; tolerance: number; broken: Row[]; logprobs: Row[] }> {
  const root = path.join(folder, 'contract');
  await mkdir(root);
  const folders = await writeServedFolders(root);
  say('vLLM is started for the contract …');
  const server = await RealVllm.start({
    environment,
    model: folders.a.folder,
    logprobsMode: 'raw_logprobs',
    logFile: path.join(folder, 'vllm-contract.log'),
  });
  try {
    const rows = await vllmContract(server.url, folders, { tolerance: TOLERANCE, packs: true });
    const broken = rows.filter(({ held }) => !held);
    for (const { what, found } of broken) say(`not held: ${what}: ${found}`);
    const logprobs = rows.filter(({ found }) => found.includes('nats'));
    return { held: broken.length === 0, rows: rows.length, tolerance: TOLERANCE, broken, logprobs };
  } finally {
    await server.kill();
  }
}
