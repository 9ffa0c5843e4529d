import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { packTar } from 'modern-tar';

/** An archive as a release has it, of one program. */
export async function archiveOf(file: string, program: string): Promise<{ bytes: Buffer; sha256: string }> {
  const body = Buffer.from(program);
  const bytes = gzipSync(await packTar([{ header: { name: file, size: body.length, mode: 0o644 }, body }]));
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** A host of releases that has one file, or none, at a path. */
export async function serveRelease(at: string) {
  let served: Buffer | undefined;
  const server = createServer((request, response) => {
    const there = request.url === at && served !== undefined;
    response.statusCode = there || request.method === 'HEAD' ? 200 : 404;
    response.end(there ? served : '');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    serve: (bytes?: Buffer) => (served = bytes),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
