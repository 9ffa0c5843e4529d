import { messageOf } from '../../../core/errors.ts';
import type { Sandbox } from '../contract.ts';

/** Runs a command with a file in and out; undefined where that went well, else what was wrong. */
export async function probe(sandbox: Sandbox): Promise<string | undefined> {
  try {
    const { files, exit, ended, stderr } = await sandbox.run({
      argv: ['cp', 'in', 'out'],
      files: [{ path: 'in', content: 'probe' }],
      collect: ['out'],
      limits: { wallSeconds: 30 },
    });
    if (Buffer.from(files.get('out') ?? []).toString() === 'probe') return undefined;
    return `a command came to nothing (exit ${exit}, ${ended}): ${stderr.trim()}`;
  } catch (error) {
    return messageOf(error);
  }
}
