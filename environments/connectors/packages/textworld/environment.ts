import { cacheEntry, cacheRoot } from '../../../../infra/cache-dir.ts';
import { sessionTool } from '../../../contract/environment.ts';
import { pythonEnvironment } from '../../python/python-environment.ts';
import { python } from '../../python/python.ts';
import { environmentReward } from '../../../verifiers/environment-reward.ts';

// Text games that TextWorld (PyPI textworld, MIT) generates from a seed, and compiles with the Inform 7 that its wheel for
// x86-64 brings: what can be done is listed with each observation. The score is the game's, of what could be had. A level
// has more rooms, more things and a longer quest. Games are kept in the cache folder: one takes one to three seconds.

const VERSION = '1.7.0';

const generated = python(new URL('./generated.py', import.meta.url), {
  requirements: new URL('./requirements.txt', import.meta.url),
  timeoutSeconds: 60,
  variables: {
    GRADUS_TEXTWORLD_GAMES: cacheEntry(cacheRoot(), { name: 'textworld-games', version: VERSION }),
  },
});

export default pythonEnvironment({
  name: 'textworld',
  version: `textworld ${VERSION}`,
  module: generated,
  levels: [1, 2, 3, 4],
  tools: [
    sessionTool({
      name: 'do',
      description: 'Carries out a command of the game.',
      arguments: {
        type: 'object',
        properties: { command: { type: 'string', maxLength: 200 } },
        required: ['command'],
        additionalProperties: false,
      },
    }),
  ],
  // The commands of the game's own walkthrough.
  demonstrate: ({ info }) => ({
    weight: 1,
    turns: (info as { walkthrough: string[] }).walkthrough.map((command) => ({
      call: { name: 'do', arguments: { command } },
    })),
  }),
  verifiers: [environmentReward()],
});
