import { afterAll } from 'vitest';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { TestServer } from './store/server.ts';

/** A real server with a store on it, for all tests of a file: `const { store } = await openTestStore();` at its top. */
export async function openTestStore(): Promise<{ server: TestServer; store: ObjectStore }> {
  const server = await TestServer.start();
  afterAll(() => server.remove());
  const store = await server.connect();
  afterAll(() => store.close());
  return { server, store };
}
