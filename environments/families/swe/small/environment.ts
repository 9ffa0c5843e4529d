import type { Environment } from '../../../contract/environment.ts';
import { sandboxNeeds } from '../../../sandbox/open-sandbox.ts';
import { sweEnvironment } from '../environment.ts';
import { SMALL_LEVELS, smallBug, type SmallBug } from './modules.ts';

const shapeOf = (level: number) => SMALL_LEVELS.find((shape) => shape.level === level)!;

/** Small generated modules with a bug of one token each: small enough for a model from scratch. */
export function sweSmallEnvironment(): Environment {
  return sweEnvironment<SmallBug>({
    name: 'swe-small',
    version: '6',
    levels: SMALL_LEVELS.map(({ level }) => level),
    tools: ['view', 'edit', 'run_tests'],
    bug: ({ split, level, index }) => smallBug(shapeOf(level), split, index),
    prompt: ({ shown }, { level }) =>
      shapeOf(level).documented ? 'Mend m.py.' : `Mend m.py: ${shown.call} should be ${shown.want}.`,
    taskCount: () => Infinity,
    needs: sandboxNeeds,
    // The module is read, and what is wrong in it replaced.
    demonstrate: ({ tree, wrong, right }) => ({
      turns: [
        { call: { name: 'view', arguments: { path: 'm.py' } }, observation: tree.get('m.py')!.trimEnd() },
        {
          call: { name: 'edit', arguments: { path: 'm.py', old: wrong, new: right } },
          observation: 'edited',
        },
        { answer: 'mended' },
      ],
      weight: 1,
    }),
  });
}
