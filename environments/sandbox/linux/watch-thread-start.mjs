// A worker thread does not take over tsx: it is registered here anew.
import { register } from 'tsx/esm/api';

register();
await import('./watch-thread.ts');
