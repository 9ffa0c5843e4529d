import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { TaskRef } from '../../../core/refs.ts';
import { chromium } from '../../sandbox/browser/chromium.ts';
import { browserNeeds } from '../../sandbox/browser/find-chromium.ts';
import { defineEnvironment, sessionTool, type Environment, type Task } from '../../contract/environment.ts';
import { environmentReward } from '../../verifiers/environment-reward.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { toolShaping } from '../../verifiers/tool-shaping.ts';
import { demonstrate } from './demonstrate.ts';
import { PAGES, SIMPLE_PAGES, TRAIN_ONLY } from './levels.ts';
import { MINIWOB_VERSION, miniwobNeed } from './page-files.ts';
import { openProblem, type Problem } from './session.ts';

const SIMPLE = 'miniwob-simple';
const SPLITS = ['train', 'heldout', 'test'] as const;

/** The pages of a level that the split has take turns; splits have different seeds. Throws GradusError('environment', 'task'). */
export function problemAt({ environment, split, level, index }: TaskRef): Problem {
  const pages = (environment === SIMPLE ? SIMPLE_PAGES : PAGES)[level - 1]?.filter(
    (page) => split === 'train' || !TRAIN_ONLY.has(page),
  );
  if (pages === undefined || !Number.isSafeInteger(index) || index < 0) {
    throw new GradusError('environment', 'task', `${environment} has no task ${index} at level ${level}`);
  }
  const turn = Math.floor(index / pages.length);
  return { page: pages[index % pages.length]!, seed: turn * SPLITS.length + SPLITS.indexOf(split) };
}

/** No page asks for more than some 110. Keys are pressed one by one, each some milliseconds of the time that a page has. */
const MOST_TYPED = 200;
const ref = z.string().describe('The ref of an element, such as e12');
// A snapshot of a large page is longer than what tools say elsewhere.
const limits = { timeoutSeconds: 30, maxOutputCharacters: 12_000 };

/**
 * MiniWoB (Shi et al. 2017; Liu et al. 2018, arXiv 1802.08802): small pages, each with a sentence that says what to do. The
 * policy reads roles, names and refs, and is rewarded by the page, without the pages' discount for time.
 */
export function miniwobEnvironment(): Environment {
  return defineEnvironment({ name: 'miniwob', levels: PAGES.map((_, i) => i + 1), ...shared() });
}

/** Seven of the pages, with an expert: something for a small model to begin with. */
export function simpleMiniwobEnvironment(): Environment {
  return defineEnvironment({
    name: SIMPLE,
    levels: SIMPLE_PAGES.map((_, i) => i + 1),
    ...shared(),
    demonstrate: ({ ref }) => demonstrate(problemAt(ref)),
  });
}

/** What is the same for all pages. */
function shared() {
  return {
    version: `${MINIWOB_VERSION}, tasks 5`,
    tools: [
      sessionTool({ name: 'look', description: 'Reads the page.', arguments: z.strictObject({}), limits }),
      sessionTool({
        name: 'click',
        description: 'Clicks an element.',
        arguments: z.strictObject({ ref }),
        limits,
      }),
      sessionTool({
        name: 'type',
        description: 'Types a text into a field, in place of what it has.',
        arguments: z.strictObject({ ref, text: z.string().max(MOST_TYPED) }),
        limits,
      }),
      sessionTool({
        name: 'select',
        description: 'Selects an option of a list by its label.',
        arguments: z.strictObject({ ref, option: z.string() }),
        limits,
      }),
      sessionTool({
        name: 'press',
        description: 'Presses a key, such as Enter or Control+a.',
        arguments: z.strictObject({ key: z.string() }),
        limits,
      }),
      sessionTool({
        name: 'drag',
        description: 'Drags one element onto another.',
        arguments: z.strictObject({ ref, to: ref }),
        limits,
      }),
    ],
    verifiers: [environmentReward(), formatVerifier(), toolShaping()],
    task: (taskRef: TaskRef) => {
      const { page, seed } = problemAt(taskRef);
      return {
        ref: taskRef,
        // Nothing by which a page could be told before it is read.
        prompt: 'Do what the page says. Look at it first.',
        info: { page, seed },
      };
    },
    taskCount: () => Infinity,
    needs: async () => [...(await browserNeeds()), miniwobNeed()],
    prepare: async () => void (await chromium()),
    sessions: { resume: 'replay', open: (task: Task) => openProblem(problemAt(task.ref)) },
  } satisfies Partial<Environment>;
}
