import { expect, test } from 'vitest';
import { curvesPage } from '../../../../bench/methods/chart.ts';
import type { Trial } from '../../../../bench/methods/trial.ts';
import { xmlProblem } from '../../../support/well-formed.ts';

const trial = (name: string, seed: number, successes: number[]): Trial => ({
  case: name,
  seed,
  points: successes.map((success, i) => ({ tokens: 500 * i, success })),
  steps: 1,
  distinct: 1,
  weights: 'f00d',
  seconds: 1,
});

const page = (trials: Trial[], cases = ['a & b', 'grpo']): string =>
  curvesPage({ title: 'A <title>', lines: ['one line'] }, [{ heading: 'a & b', cases }], trials, 1000);

const points = (svg: string): string[] =>
  [...svg.matchAll(/<polyline points="([^"]*)"/g)].map(([, at]) => at!);

test('a chart is well-formed, with a line and a band for each case that has trials', () => {
  const svg = page([trial('a & b', 1, [0.5, 0.75, 1]), trial('grpo', 1, [0.5, 0.5, 0.5])]);
  expect(xmlProblem(svg)).toBeUndefined();
  expect(points(svg)).toEqual(['0,66 108,33 216,0', '0,66 108,66 216,66']);
  expect(svg.match(/class="(first|second)-band"/g)).toHaveLength(2);
});

test('a line is the mean of the seeds, and its band goes from the lowest to the highest', () => {
  const svg = page([trial('grpo', 1, [0.5, 1]), trial('grpo', 2, [0.25, 0.5])], ['grpo']);
  expect(points(svg)).toEqual(['0,82.5 108,33']);
  expect(svg).toContain('<path d="M 0 66 L 108 0 L 108 66 L 0 99 Z" class="first-band"/>');
});

test('what was not run has no chart of what it is compared with alone', () => {
  const panels = ['grpo', 'ppo'].map((heading) => ({
    heading,
    cases: [heading, 'grpo'].slice(0, 1 + Number(heading !== 'grpo')),
  }));
  const svg = curvesPage({ title: 'A title', lines: [] }, panels, [trial('grpo', 1, [0.5, 1])], 1000);
  expect(points(svg)).toHaveLength(1);
  expect(svg).not.toContain('ppo');
});

test('a chart without trials is well-formed, and so is one whose seeds got differently far', () => {
  expect(xmlProblem(page([]))).toBeUndefined();
  const svg = page([trial('grpo', 1, [0.5, 1, 1]), trial('grpo', 2, [0.5, 1])], ['grpo']);
  expect(points(svg)).toEqual(['0,66 108,0']);
});
