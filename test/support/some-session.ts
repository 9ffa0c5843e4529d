import type { SessionAsk } from '../../environments/host/asks.ts';

/** Of an episode that has made no call, for tools that have no use for it. */
export const someSession: SessionAsk = {
  ref: { environment: 'calculator', split: 'train', level: 1, index: 0 },
  id: 'run/rl/1/0/0',
  acts: [],
};
