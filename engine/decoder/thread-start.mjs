// A worker thread takes over neither tsx's nor vitest's way of importing TypeScript: it is registered here anew.
import { register } from 'tsx/esm/api';

register();
await import('./thread.ts');
