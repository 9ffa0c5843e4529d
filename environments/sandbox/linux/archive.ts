import { packTar, unpackTar } from 'modern-tar';
import type { WorkFile } from '../contract.ts';

/** Files as a tar archive. */
export async function packFiles(files: readonly WorkFile[]): Promise<Uint8Array> {
  return packTar(
    files.map(({ path, content, executable }) => {
      const body = typeof content === 'string' ? Buffer.from(content) : content;
      return {
        header: { name: path, size: body.byteLength, mode: executable ? 0o755 : 0o644, mtime: new Date(0) },
        body,
      };
    }),
  );
}

/**
 * The regular files of an archive that a sandboxed program may have written or damaged: links and devices are left out,
 * and so is everything that does not lie at or below one of the paths that were asked for. An archive that is not whole
 * gives nothing.
 */
export async function unpackFiles(
  archive: Uint8Array,
  asked: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  if (asked.length === 0 || archive.length === 0) return files;
  let entries;
  try {
    entries = await unpackTar(archive, { strict: true });
  } catch {
    return files; // the program's own doing: what it is asked for is not there
  }
  for (const { header, data } of entries) {
    const wanted = asked.some((path) => header.name === path || header.name.startsWith(`${path}/`));
    const plain = !header.name.split('/').some((part) => part === '..' || part === '.' || part === '');
    if (header.type === 'file' && wanted && plain && data) files.set(header.name, data);
  }
  return files;
}
