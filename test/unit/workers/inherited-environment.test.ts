import { expect, test } from 'vitest';
import { inheritedEnvironment } from '../../../workers/inherited-environment.ts';

test("workers get what finds libraries and what is Gradus's own, and no keys of the shell", () => {
  const shell = {
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C',
    GRADUS_DECODER_THREADS: '2',
    CUDA_VISIBLE_DEVICES: '0',
    AWS_SECRET_ACCESS_KEY: 'a',
    GITHUB_TOKEN: 'b',
    OPENAI_API_KEY: 'c',
    npm_config__auth: 'd',
  };
  expect(inheritedEnvironment(shell)).toEqual({
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C',
    GRADUS_DECODER_THREADS: '2',
    CUDA_VISIBLE_DEVICES: '0',
  });
});

test('a key that is named is handed on', () => {
  const shell = { GRADUS_PASS_ENV: 'OPENAI_API_KEY, OTHER', OPENAI_API_KEY: 'c', OTHER: 'e', THIRD: 'f' };
  expect(inheritedEnvironment(shell)).toEqual({
    GRADUS_PASS_ENV: 'OPENAI_API_KEY, OTHER',
    OPENAI_API_KEY: 'c',
    OTHER: 'e',
  });
});
