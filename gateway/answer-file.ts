import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { Problem } from './problem.ts';

/** Nobody judges an answer of more bytes. */
export const MOST_ANSWER_BYTES = 2 ** 20;
export const TOO_LONG = `has more than ${MOST_ANSWER_BYTES} bytes`;

/**
 * The answer that an agent has left; null without one. What it left may be anything: a pipe, which is not waited for, or a
 * link to what has no end. Throws Problem for what is no answer.
 */
export async function readAnswer(file: string): Promise<string | null> {
  try {
    const opened = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await opened.stat()).isFile()) throw noAnswer('is no file');
      const { buffer, bytesRead } = await opened.read(Buffer.alloc(MOST_ANSWER_BYTES + 1));
      if (bytesRead > MOST_ANSWER_BYTES) throw noAnswer(TOO_LONG);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await opened.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (error instanceof Problem || code === undefined) throw error;
    throw noAnswer(`cannot be read (${code})`);
  }
}

export const noAnswer = (why: string): Problem =>
  new Problem(400, 'no_answer', `what it left in GRADUS_ANSWER ${why}: write the text of the answer there`);
