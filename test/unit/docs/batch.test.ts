import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { METHOD_KINDS } from '../../../core/algorithms/index.ts';
import { algorithmWith } from '../../support/algorithm.ts';
import { ROOT } from '../../support/markdown.ts';

const page = readFileSync(path.join(ROOT, 'docs/batch.md'), 'utf8');

test.each(METHOD_KINDS)('docs/batch.md has the equation of what %s minimizes', (kind) => {
  const { objective } = algorithmWith(
    kind === 'opd' ? { kind, teachers: [{ from: 'other' }] } : { kind },
  ).plan;
  expect(page).toMatch(new RegExp(`^\\| \`${objective.kind}\` +\\|`, 'm'));
});
