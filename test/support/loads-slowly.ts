/** A module of an environment that takes longer to load than a worker may be silent, as one that imports much. */
import { setTimeout } from 'node:timers/promises';
import environments from './hostile-environments.ts';

await setTimeout(1500);

export default environments;
