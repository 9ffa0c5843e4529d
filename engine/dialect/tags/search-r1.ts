import type { TagConventions } from './tag-dialect.ts';

/** Search-R1 (Jin et al. 2025, arXiv 2503.09516): `<search>query</search>`, then `<information>…</information>`. */
export const searchR1: TagConventions = {
  name: 'search-r1',
  tags: { call: 'search', answer: 'answer', result: 'information', fences: false },
  instructions: ({ description }) =>
    [
      'Solve the task below. Reason inside <think> and </think> whenever you learn something new.',
      `Where a tool can help, write what you ask of it between <search> and </search>. The tool: ${description}`,
      'What it says comes back between <information> and </information>. You may ask as often as you need.',
      'When you know the answer, write it between <answer> and </answer>, and nothing else there.',
    ].join(' '),
  writeCall: (argument) => argument,
  readCall: (content) => content.trim(),
  writeAnswer: (answer) => answer,
  readAnswer: (content) => content.trim(),
};
