import type { TierPlugin } from '../workers/tier-plugin.ts';
import { chemistry } from './molecules/plugin.ts';

/** All there are. A plug-in that is set up is served by `gradus dev` beside the other workers. */
export const PLUGINS: readonly TierPlugin[] = [chemistry];
