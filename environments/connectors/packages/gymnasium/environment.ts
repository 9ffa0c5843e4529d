import type { Split } from '../../../../core/refs.ts';
import type { Environment } from '../../../contract/environment.ts';
import { sessionTool } from '../../../contract/environment.ts';
import { pythonEnvironment, pythonExpert } from '../../python/python-environment.ts';
import { python } from '../../python/python.ts';
import { environmentReward } from '../../../verifiers/environment-reward.ts';

// Gymnasium's toy texts (PyPI gymnasium, MIT), drawn in characters. The score is 1 where the goal was reached or the game
// won; rewards in Gymnasium's own units stand with each turn, and their sum as `return` with the episode.

const toyText = python(new URL('./toy_text.py', import.meta.url), {
  requirements: new URL('./requirements.txt', import.meta.url),
});

type Counts = Record<Split, number>;

interface Game {
  game: string;
  levels: readonly number[];
  actions: readonly string[];
  /** How many different tasks a level has; endless where it is not said. */
  counts?: Record<number, Counts>;
  /** Whether its rules are a table, from which the best way can be computed. */
  tabled?: boolean;
}

const GAMES: readonly Game[] = [
  // 3 × 3, 4 × 4, 8 × 8, and 4 × 4 on slippery ice.
  {
    game: 'frozen-lake',
    levels: [1, 2, 3, 4],
    actions: ['left', 'down', 'right', 'up'],
    counts: {
      1: { train: 30, heldout: 10, test: 10 },
      2: { train: 180, heldout: 60, test: 60 },
      4: { train: 180, heldout: 60, test: 60 },
    },
    tabled: true,
  },
  {
    game: 'taxi',
    levels: [1],
    actions: ['south', 'north', 'east', 'west', 'pickup', 'dropoff'],
    counts: { 1: { train: 180, heldout: 60, test: 60 } },
    tabled: true,
  },
  {
    game: 'cliff-walking',
    levels: [1],
    actions: ['up', 'right', 'down', 'left'],
    counts: { 1: { train: 23, heldout: 7, test: 7 } },
    tabled: true,
  },
  { game: 'blackjack', levels: [1], actions: ['stick', 'hit'] },
];

function gymnasium({ game, levels, actions, counts = {}, tabled }: Game): Environment {
  return pythonEnvironment({
    name: `gymnasium-${game}`,
    version: 'gymnasium 1.4.0, tasks 2',
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
    ...(tabled && { demonstrate: pythonExpert(toyText) }),
    verifiers: [environmentReward()],
    taskCount: (split, level) => counts[level]?.[split] ?? Infinity,
  });
}

export default GAMES.map(gymnasium);
