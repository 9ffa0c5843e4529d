import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ROOT } from './markdown.ts';

/** What `gradus recompute RUN` prints of an installation whose state is in that folder. Throws where it fails. */
export async function recompute(stateDir: string, run: string): Promise<string> {
  const args = ['--import', 'tsx', 'cli/gradus.ts', 'recompute', run, '--state-dir', stateDir];
  return (await promisify(execFile)(process.execPath, args, { cwd: ROOT })).stdout;
}
