import { expect, test } from 'vitest';
import { whilePaused } from '../../../../../activities/rollout/served/paused.ts';

const server = (asked: string[], resumes: () => Promise<void> = async () => undefined) => ({
  pause: async () => void asked.push('pause'),
  resume: async () => {
    asked.push('resume');
    await resumes();
  },
});
const { signal } = new AbortController();

test('a server goes on after the work', async () => {
  const asked: string[] = [];
  const worked = whilePaused(server(asked), signal, async () => void asked.push('load'));
  await worked;
  expect(asked).toEqual(['pause', 'load', 'resume']);
});

test('and after work that has failed, which is what is said of it', async () => {
  const failing = async (): Promise<void> => {
    throw new Error('no such folder');
  };
  const asked: string[] = [];
  await expect(whilePaused(server(asked), signal, failing)).rejects.toThrow('no such folder');
  expect(asked).toEqual(['pause', 'resume']);
  const away = server([], async () => {
    throw new Error('gone');
  });
  await expect(whilePaused(away, signal, failing)).rejects.toThrow('no such folder');
});
