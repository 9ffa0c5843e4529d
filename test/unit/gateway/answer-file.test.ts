import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { MOST_ANSWER_BYTES, readAnswer } from '../../../gateway/answer-file.ts';
import { Problem } from '../../../gateway/problem.ts';

const folder = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const at = (name: string): string => path.join(folder, name);

test('an answer is what a file says, and no file is no answer', async () => {
  await writeFile(at('text'), 'forty-two ½');
  expect(await readAnswer(at('text'))).toBe('forty-two ½');
  expect(await readAnswer(at('nowhere'))).toBeNull();
});

test('whatever else an agent leaves is no answer, and nobody waits for it or holds it in memory', async () => {
  execFileSync('mkfifo', [at('pipe')]);
  await mkdir(at('folder'));
  await symlink('/dev/zero', at('endless'));
  await writeFile(at('long'), Buffer.alloc(MOST_ANSWER_BYTES + 1, 'a'));
  await symlink(at('loop'), at('loop'));
  for (const [name, why] of [
    ['pipe', 'is no file'],
    ['folder', 'is no file'],
    ['endless', 'is no file'],
    ['long', 'has more than 1048576 bytes'],
    ['loop', 'cannot be read (ELOOP)'],
  ] as const) {
    const error = await readAnswer(at(name)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Problem);
    expect((error as Problem).message).toContain(why);
  }
});
