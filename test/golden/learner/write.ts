/** `tsx test/golden/learner/write.ts` writes the golden files of the learner's contract anew. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { goldenFiles } from '../../support/learner-contract.ts';
import { TestServer } from '../../support/store/server.ts';

const server = await TestServer.start();
const store = await server.connect();
try {
  for (const [name, bytes] of await goldenFiles(store)) {
    const file = path.join(import.meta.dirname, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, bytes);
  }
} finally {
  store.close();
  await server.remove();
}
