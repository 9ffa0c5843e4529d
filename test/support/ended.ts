import { expect } from 'vitest';

/** How a run ends whose stages are done: so small a model need not have had a success. */
export const isDone = (end: string): boolean => end === 'completed' || end === 'no-success';

export const DONE = expect.stringMatching(/^(?:completed|no-success)$/u) as string;
