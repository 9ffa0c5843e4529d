import type { Split } from '../../core/refs.ts';
import type { Environment } from '../contract.ts';
import { sessionTool } from '../contract.ts';
import { pythonEnvironment } from '../python/python-environment.ts';
import { python } from '../python/python.ts';
import { environmentReward } from '../verifiers/environment-reward.ts';

// Gymnasium's toy texts (PyPI gymnasium, MIT), drawn in characters. The score is 1 where the goal was reached or the game
// won; rewards in Gymnasium's own units stand with each turn, and their sum as `return` with the episode.

const toyText = python(new URL('./toy_text.py', import.meta.url), {
  requirements: new URL('./requirements.txt', import.meta.url),
});

interface Game {
  game: string;
  levels: readonly number[];
  actions: readonly string[];
  counts?: Record<Split, number>;
}

const GAMES: readonly Game[] = [
  // 3 × 3, 4 × 4, 8 × 8, and 4 × 4 on slippery ice.
  { game: 'frozen-lake', levels: [1, 2, 3, 4], actions: ['left', 'down', 'right', 'up'] },
  {
    game: 'taxi',
    levels: [1],
    actions: ['south', 'north', 'east', 'west', 'pickup', 'dropoff'],
    counts: { train: 180, heldout: 60, test: 60 },
  },
  {
    game: 'cliff-walking',
    levels: [1],
    actions: ['up', 'right', 'down', 'left'],
    counts: { train: 23, heldout: 7, test: 7 },
  },
  { game: 'blackjack', levels: [1], actions: ['stick', 'hit'] },
];

function gymnasium({ game, levels, actions, counts }: Game): Environment {
  return pythonEnvironment({
    name: `gymnasium-${game}`,
    version: 'gymnasium 1.4.0',
    module: toyText,
    levels,
    about: [game],
    tools: [
      sessionTool({
        name: 'act',
        description: 'Takes an action.',
        arguments: {
          type: 'object',
          properties: { action: { enum: actions } },
          required: ['action'],
          additionalProperties: false,
        },
      }),
    ],
    verifiers: [environmentReward()],
    ...(counts && { taskCount: (split: Split) => counts[split] }),
  });
}

export default GAMES.map(gymnasium);
