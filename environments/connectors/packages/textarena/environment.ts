import type { Split } from '../../../../core/refs.ts';
import type { Environment } from '../../../contract/environment.ts';
import { sessionTool } from '../../../contract/environment.ts';
import { pythonEnvironment } from '../../python/python-environment.ts';
import { python } from '../../python/python.ts';
import { environmentReward } from '../../../verifiers/environment-reward.ts';

// Games of TextArena (PyPI textarena, MIT): those that need no list of words from the internet and no model of somebody
// else. A level is a variant of the game. The score is 1 for a game that is won; of two players (Nim, tic-tac-toe, against
// one who plays at random by the task's seed) ½ for a draw.

const games = python(new URL('./games.py', import.meta.url), {
  requirements: new URL('./requirements.txt', import.meta.url),
});

/** As TextArena calls it; where there are few different beginnings, how many of them are dealt, a multiple of five. */
type Variant = string | readonly [name: string, beginnings: number];

/** The variants of each game, easiest first. */
const GAMES: Readonly<Record<string, readonly Variant[]>> = {
  'guess-the-number': ['GuessTheNumber-v0', 'GuessTheNumber-v0-hardcore'],
  mastermind: [['Mastermind-v0', 350], ['Mastermind-v0-hard', 1000], 'Mastermind-v0-extreme'],
  'lights-out': ['LightsOut-v0'],
  minesweeper: ['Minesweeper-v0-small', 'Minesweeper-v0', 'Minesweeper-v0-medium'],
  'frozen-lake': [['FrozenLake-v0-random', 500]],
  '2048': ['2048-v0-ultra-easy', '2048-v0-mega-easy', '2048-v0-super-easy', '2048-v0'],
  sudoku: ['Sudoku-v0-very-easy', 'Sudoku-v0-easy', 'Sudoku-v0'],
  nim: ['Nim-v0', 'Nim-v0-medium', 'Nim-v0-large'],
  'tic-tac-toe': ['TicTacToe-v0'],
};
/** Of five beginnings. */
const OF_FIVE: Readonly<Record<Split, number>> = { train: 3, heldout: 1, test: 1 };

function textArena(name: string, variants: readonly Variant[]): Environment {
  const known = variants.map((one) => (typeof one === 'string' ? ([one, null] as const) : one));
  return pythonEnvironment({
    name: `textarena-${name}`,
    version: 'textarena 0.7.4, tasks 3',
    module: games,
    levels: variants.map((_, n) => n + 1),
    about: [known.map((one) => [...one])],
    taskCount: (split, level) => {
      const beginnings = known[level - 1]![1];
      return beginnings === null ? Infinity : (OF_FIVE[split] * beginnings) / 5;
    },
    tools: [
      sessionTool({
        name: 'play',
        description: 'Makes a move, written as the rules say.',
        arguments: {
          type: 'object',
          properties: { move: { type: 'string', maxLength: 200 } },
          required: ['move'],
          additionalProperties: false,
        },
      }),
    ],
    verifiers: [environmentReward()],
  });
}

export default Object.entries(GAMES).map(([name, variants]) => textArena(name, variants));
