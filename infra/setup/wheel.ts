import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import yauzl from 'yauzl';
import { GradusError } from '../../core/errors.ts';
import { runCommand, tailOf } from './command.ts';

const GLIBC_TAGS = ['2_17', '2_27', '2_28'];

/** pip's platform tags for Linux on this processor; a wheel may carry any of them. */
export function wheelPlatforms(arch: NodeJS.Architecture): string[] {
  const machine = arch === 'arm64' ? 'aarch64' : 'x86_64';
  return [...GLIBC_TAGS.map((tag) => `manylinux_${tag}_${machine}`), `manylinux2014_${machine}`];
}

/** A wheel of the Python package index in one version. */
export interface PinnedWheel {
  project: string;
  version: string;
  /** In hex: of its wheel for each processor, as the index has them. */
  sha256: readonly [string, ...string[]];
}

/** As pip reads it. */
const requirementOf = ({ project, version, sha256 }: PinnedWheel): string =>
  [`${project}==${version}`, ...sha256.map((digest) => `--hash=sha256:${digest}`)].join(' ');

/**
 * Downloads one wheel from the Python package index into the empty `folder`. Which Python runs pip does not matter:
 * the wheel is for its libraries only. One that does not have the digest is refused.
 * @returns the wheel's path
 * @throws GradusError infra/download-failed
 */
export async function downloadWheel(python: string, pinned: PinnedWheel, folder: string): Promise<string> {
  const args = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--no-cache-dir', '--only-binary=:all:'];
  args.push('--disable-pip-version-check', '--python-version', '3.11', '--implementation', 'cp');
  for (const platform of wheelPlatforms(process.arch)) args.push('--platform', platform);
  // Only a file of requirements can have hashes.
  const file = `${folder}.requirement`;
  await writeFile(file, `${requirementOf(pinned)}\n`);
  const result = await runCommand(python, [...args, '--dest', folder, '--require-hashes', '-r', file]);
  await rm(file);
  const wheel = (await readdir(folder)).find((name) => name.endsWith('.whl'));
  if (result.code !== 0 || wheel === undefined) {
    throw new GradusError(
      'infra',
      'download-failed',
      `pip could not download ${pinned.project} ${pinned.version}:\n${tailOf(result.stderr)}\n` +
        `Is the Python package index reachable, and the disk not full? Then run the command again.`,
      { retryable: true },
    );
  }
  return path.join(folder, wheel);
}

/**
 * Extracts from the zip file what `target` maps to a path; every other entry is skipped unread.
 * @returns how many files were written
 */
export async function extract(zip: string, target: (entry: string) => string | undefined): Promise<number> {
  const archive = await yauzl.openPromise(zip, { lazyEntries: true });
  let written = 0;
  try {
    for await (const entry of archive.eachEntry()) {
      const file = entry.fileName.endsWith('/') ? undefined : target(entry.fileName);
      if (file === undefined) continue;
      await mkdir(path.dirname(file), { recursive: true });
      await pipeline(await archive.openReadStreamPromise(entry), createWriteStream(file));
      written += 1;
    }
  } finally {
    archive.close();
  }
  return written;
}

/**
 * Extracts from each of the wheels what `target` maps to a path. They are downloaded into `scratch` one at a time:
 * together they are gigabytes.
 * @throws GradusError infra/download-failed
 */
export async function takeFromWheels(
  python: string,
  wheels: readonly PinnedWheel[],
  scratch: string,
  target: (entry: string) => string | undefined,
): Promise<void> {
  for (const pinned of wheels) {
    const folder = await mkdtemp(path.join(scratch, 'wheel-'));
    await extract(await downloadWheel(python, pinned, folder), target);
    await rm(folder, { recursive: true });
  }
}
