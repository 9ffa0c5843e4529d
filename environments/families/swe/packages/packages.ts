import { GradusError } from '../../../../core/errors.ts';
import { isBelow } from '../tree.ts';

/** A package whose source distribution brings its tests. */
export interface PackageShape {
  name: string;
  /** Folders, relative to the root, that Python imports from. */
  sourceRoots: readonly string[];
  /** Folders of what a patch may change. */
  sources: readonly string[];
  /** Folders of tests, which are as they were, also where they lie among the sources. */
  tests: readonly string[];
  /** Folders and files of the source distribution that would be most of the tree, and what needs them. */
  leftOut: readonly string[];
  /** Tests that ask for time or threads, and say now this, now that: whole files, or the beginnings of names. */
  unsteady: readonly string[];
  /** Files in which no bug is made: tables, and what no test looks at. */
  untouched: readonly string[];
  /** How many are made. */
  bugs: number;
  /** Processor time that all tests may take, several times what they need; whole seconds. */
  cpuSeconds: number;
}

/** Their pins are in sdists.txt. */
export const PACKAGES: readonly PackageShape[] = [
  {
    name: 'toolz',
    sourceRoots: [''],
    sources: ['toolz', 'tlz'],
    tests: ['toolz/tests', 'toolz/sandbox/tests'],
    leftOut: [],
    unsteady: ['toolz/sandbox/tests/test_parallel.py'],
    untouched: ['toolz/_signatures.py', 'toolz/sandbox/parallel.py'],
    bugs: 25,
    cpuSeconds: 20,
  },
  {
    name: 'cachetools',
    sourceRoots: ['src'],
    sources: ['src/cachetools'],
    tests: ['tests'],
    leftOut: [],
    unsteady: ['tests/test_threading.py'],
    untouched: [],
    bugs: 26,
    cpuSeconds: 20,
  },
  {
    name: 'tabulate',
    sourceRoots: [''],
    sources: ['tabulate'],
    tests: ['test'],
    leftOut: [],
    unsteady: ['test/test_cli.py'],
    untouched: [],
    bugs: 16,
    cpuSeconds: 20,
  },
  {
    name: 'tomlkit',
    sourceRoots: [''],
    sources: ['tomlkit'],
    tests: ['tests'],
    leftOut: ['tests/toml-test', 'tests/test_toml_tests.py'],
    unsteady: [],
    untouched: [],
    bugs: 20,
    cpuSeconds: 30,
  },
  {
    name: 'mistune',
    sourceRoots: ['src'],
    sources: ['src/mistune'],
    tests: ['tests'],
    leftOut: [],
    unsteady: [
      'tests/test_inline_limits.py',
      'tests/test_misc.py::TestMiscCases::test_deeply_indented_list',
      'tests/test_security_edge_cases.py',
      'tests/test_security_formatting.py',
      'tests/test_security_inline.py',
      'tests/test_security_math.py',
      'tests/test_security_ref_links.py',
    ],
    untouched: ['src/mistune/__main__.py'],
    bugs: 20,
    cpuSeconds: 30,
  },
];

export function packageCalled(name: string): PackageShape {
  const found = PACKAGES.find((one) => one.name === name);
  if (found === undefined) throw new GradusError('environment', 'swe-package', `there is no package ${name}`);
  return found;
}

/** What of a source distribution is given to a policy: sources, tests, the read-me and the licence. No history, no builds. */
export const isKept = ({ sources, tests, leftOut }: PackageShape, path: string): boolean =>
  isBelow([...sources, ...tests], path)
    ? !isBelow(leftOut, path)
    : /^(?:README(?:\.\w+)?|LICEN[CS]E(?:\.\w+)?|pyproject\.toml)$/u.test(path);

export const isTestFile = ({ tests, unsteady }: PackageShape, path: string): boolean =>
  isBelow(tests, path) && /(?:^|\/)test_\w+\.py$/u.test(path) && !unsteady.includes(path);

/** Whether bugs are made in a file. */
export const isMutated = ({ sources, tests, untouched }: PackageShape, path: string): boolean =>
  isBelow(sources, path) && !isBelow(tests, path) && path.endsWith('.py') && !untouched.includes(path);

export const isSteady = ({ unsteady }: PackageShape, test: string): boolean =>
  !unsteady.some((beginning) => test.startsWith(beginning));
