import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parseSpec } from '../../../../../spec/parse-spec.ts';
import { assertMolecules } from '../../../../../plugins/molecules/report/assert-molecules.ts';
import { builtInEnvironments } from '../../../../../environments/families/index.ts';
import { ROOT } from '../../../../support/markdown.ts';

const environments = new Map(builtInEnvironments.map((environment) => [environment.name, environment]));
const example = (name: string) => {
  const written: unknown = JSON.parse(readFileSync(path.join(ROOT, 'examples', name), 'utf8'));
  return parseSpec(written, 'run', environments);
};

test('the demo of molecules takes no spec of another environment, not even to report on', () => {
  const molecules = example('molecules.json');
  const calculator = example('calculator.json');
  expect(() => assertMolecules(molecules)).not.toThrow();
  expect(() => assertMolecules(calculator)).toThrow('tasks of the environment "calculator"');
  expect(() => assertMolecules({ ...molecules, evaluation: calculator.evaluation })).toThrow('"calculator"');
});
