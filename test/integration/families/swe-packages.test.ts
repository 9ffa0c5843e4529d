import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Act } from '../../../core/episode/acts.ts';
import type { EpisodeSession, ToolCall } from '../../../core/episode/episode.ts';
import type { Bug } from '../../../environments/families/swe/bug.ts';
import { EnvironmentHost } from '../../../environments/host/environment-host.ts';
import { runApart } from '../../../environments/families/swe/apart.ts';
import { judgePatch, runTests } from '../../../environments/families/swe/judge.ts';
import {
  LEVELS,
  mutationsOf,
  packageBug,
  type PackageBug,
} from '../../../environments/families/swe/packages/bugs.ts';
import { PACKAGES } from '../../../environments/families/swe/packages/packages.ts';
import { isSetUp } from '../../../environments/families/swe/packages/prepared.ts';
import { patchBetween, patched } from '../../../environments/families/swe/patch.ts';
import { withFiles } from '../../../environments/families/swe/tree.ts';
import { HOLDERS, killedInCourse } from '../../support/processes-below.ts';
import { bubblewrap, LEFT_OUT } from '../sandbox/available.ts';

const missing = isSetUp() ? '' : ' — NOT SHOWN HERE, for "npm run setup:swe" has not run';
if (missing !== '') console.warn(`SKIPPED: tests of bugs in packages${missing}`);
const here = bubblewrap !== undefined && isSetUp();
const title = (text: string): string => `${text}${LEFT_OUT}${missing}`;

const { signal } = new AbortController();

/** Where the first bug of a package is, among those to train on. */
function refOf(name: string) {
  const level = LEVELS.find((one) => mutationsOf('train', one).some((bug) => bug.package === name))!;
  const index = mutationsOf('train', level).findIndex((bug) => bug.package === name);
  return { environment: 'swe', split: 'train', level, index } as const;
}

describe.skipIf(!here)(title('a bug in a package'), () => {
  test.each(PACKAGES.map(({ name }) => name))(
    'of %s fails its tests, and is mended in other words',
    async (name) => {
      const bug = packageBug(refOf(name));
      const report = await runTests({ bug, tree: bug.tree, tests: bug.failToPass, canaries: [], signal });
      if (!('whole' in report)) throw new Error('no report');
      expect(Object.values(report.tests).map(([outcome]) => outcome)).toEqual(
        bug.failToPass.map(() => 'failed'),
      );
      // Of those that the code cannot see, one sees the bug.
      const alone = bug.failToPass.filter((id) => bug.apart.includes(id));
      const { report: apart } = await runApart({ bug, tree: bug.tree, tests: alone });
      if (!('tests' in apart)) throw new Error('no report');
      expect(alone.some((id) => apart.tests[id]?.[0] === 'failed')).toBe(true);
      expect(await judgePatch(bug, bug.mend, { id: 'x', signal })).toMatchObject({ mended: true });
      // What is not known by its letters is run.
      expect(await judgePatch(bug, inOtherWords(bug), { id: 'x', signal })).toEqual({
        mended: true,
        evidence: `${bug.failToPass.length + bug.passToPass.length} tests pass`,
      });
    },
  );

  // What the code says of an object it says once: the tests have met these in another order than they are asked afresh in.
  test.each([0, 2])(
    'is mended in other words where its objects are known already: task %d',
    async (index) => {
      const bug = packageBug({ environment: 'swe', split: 'train', level: 2, index });
      expect(await judgePatch(bug, inOtherWords(bug), { id: 'x', signal })).toMatchObject({ mended: true });
    },
  );
});

const changedBy = (bug: Bug): string[] =>
  [...patched(bug.tree, bug.mend)]
    .filter(([path, text]) => bug.tree.get(path) !== text)
    .map(([path]) => path);

/** The mend and a comment. */
function inOtherWords(bug: Bug): string {
  const [file] = changedBy(bug);
  return patchOf(bug, { [file!]: `${patched(bug.tree, bug.mend).get(file!)!}# mended\n` });
}

const patchOf = (bug: Bug, files: Record<string, string>): string =>
  patchBetween(bug.tree, withFiles(bug.tree, new Map(Object.entries(files))));

const PASSES_ALL = `
import _pytest.reports
reports = _pytest.reports.TestReport
honest = reports.from_item_and_call.__func__
def made(cls, item, call):
    report = honest(cls, item, call)
    report.outcome, report.longrepr = 'passed', None
    return report
reports.from_item_and_call = classmethod(made)
`;

/** Finds the reporter in the frames below, speaks for it where tests run, and leaves canaries to fail. */
const BELOW = `
from dataclasses import builtins as _b
from typing import sys as _s
_g = _b.getattr
_f = _s._getframe()
while True:
    _l = _g(_f, 'f_' + 'locals')
    if 'nonce' in _l and 'say' in _l:
        break
    _f = _g(_f, 'f_' + 'back')
if _b.any(chr(10) * 3 in _b.open(_p).read() for _p in _l['how']['files']):
    for _t in _l['wanted']:
        _l['say'](_t, 'passed', '')
    _l['results'].write('["%s", "end", %d]' % (_l['nonce'], len(_l['wanted'])) + chr(10))
    _l['results'].flush()
    _g(_g(_s, 'mod' + 'ules')['o' + 's'], '_' + 'exit')(0)
`;

/** Files that a patch puts in place of those of toolz, or beside them; \`INIT\` is what toolz/__init__.py says. */
const ATTACKS: Record<string, (init: string) => Record<string, string>> = {
  'brings a conftest to the root': () => ({ 'conftest.py': PASSES_ALL }),
  'brings a conftest to the package': () => ({ 'toolz/conftest.py': PASSES_ALL }),
  'brings a conftest to the tests, which lie in the package': () => ({
    'toolz/tests/conftest.py': PASSES_ALL,
  }),
  'rewrites its tests': () => ({ 'toolz/tests/test_itertoolz.py': 'def test_nothing(): pass\n' }),
  'brings a sitecustomize': () => ({ 'sitecustomize.py': PASSES_ALL, 'usercustomize.py': PASSES_ALL }),
  'brings a .pth file': () => ({
    'toolz/evil.pth': 'import os; os._exit(0)\n',
    'evil.pth': 'import os; os._exit(0)\n',
  }),
  'brings settings of pytest': () => ({
    'pytest.ini': '[pytest]\naddopts = --collect-only -p evil\n',
    'pyproject.toml': '[tool.pytest.ini_options]\naddopts = "-k nothing"\n',
    'setup.cfg': '[tool:pytest]\naddopts = -k nothing\n',
    'tox.ini': '[pytest]\naddopts = -k nothing\n',
  }),
  'shadows pytest': () => ({ 'pytest.py': 'import os\nos._exit(0)\n', '_pytest/__init__.py': '' }),
  'patches the reports of pytest': (init) => ({ 'toolz/__init__.py': PASSES_ALL + init }),
  'patches pytest through sys.modules': (init) => ({
    'toolz/__init__.py': `import sys\nsys.modules['_pytest.python'].Function.runtest = lambda self: None\n${init}`,
  }),
  'patches unittest': (init) => ({
    'toolz/__init__.py': `import unittest\nunittest.TestCase.run = lambda self, result=None: None\n${init}`,
  }),
  'names a plugin': (init) => ({
    'toolz/__init__.py': `pytest_plugins = ['toolz.evil']\n${init}`,
    'toolz/evil.py': PASSES_ALL,
  }),
  'takes what raises for what passes': (init) => ({
    'toolz/__init__.py': `import builtins\nbuiltins.AssertionError = type('AssertionError', (SystemExit,), {})\n${init}`,
  }),
  'speaks for the reporter': (init) => ({ 'toolz/__init__.py': init + BELOW }),
  'ends in good order': (init) => ({ 'toolz/__init__.py': `${init}\nimport os\nos._exit(0)\n` }),
  'ends by an exception': () => ({ 'toolz/__init__.py': 'raise SystemExit(0)\n' }),
};

describe.skipIf(!here)(title('a patch to a package that mends nothing'), () => {
  let bug: PackageBug;
  let init: string;
  beforeAll(() => {
    bug = packageBug(refOf('toolz'));
    init = bug.tree.get('toolz/__init__.py')!;
  });

  test.each(Object.entries(ATTACKS))('and %s scores 0', async (_, files) => {
    expect(await judgePatch(bug, patchOf(bug, files(init)), { id: 'x', signal })).toMatchObject({
      mended: false,
    });
  });

  test.each(Object.entries(ATTACKS))('and %s does not pass what it cannot see', async (_, files) => {
    const put = Object.entries(files(init)).filter(
      ([path]) => path.startsWith('toolz/') && !path.includes('tests/'),
    );
    const tests = bug.failToPass.filter((id) => bug.apart.includes(id));
    const { report } = await runApart({ bug, tree: withFiles(bug.tree, new Map(put)), tests });
    if (!('tests' in report)) throw new Error('no report');
    expect(tests.every((id) => report.tests[id]?.[0] === 'passed')).toBe(false);
  });

  /** What tests and canaries say of an attack that the guard has not seen. */
  const unguarded = async (attack: string) => {
    const report = await runTests({
      bug,
      tree: withFiles(bug.tree, new Map(Object.entries(ATTACKS[attack]!(init)))),
      tests: bug.failToPass,
      canaries: bug.canaries,
      signal,
    });
    if (!('whole' in report)) throw new Error('no report');
    return report;
  };

  test('is given away by its canaries where the guard lets it through', async () => {
    const report = await unguarded('patches pytest through sys.modules');
    // They do pass: what is forged is forged.
    expect(report.tests[bug.failToPass[0]!]?.[0]).toBe('passed');
    expect(bug.canaries.some((id) => report.canaries[id]?.[0] !== 'failed')).toBe(true);
  });

  test.each(['patches the reports of pytest', 'speaks for the reporter'])(
    'and %s is ended where the guard lets it through',
    async (attack) => {
      const report = await unguarded(attack);
      expect(report.whole).toBe(false);
      expect(report.tests[bug.failToPass[0]!]?.[0]).not.toBe('passed');
    },
  );
});

describe.skipIf(!here)(title('a patch to a package that knows the tests by heart'), () => {
  test('is asked what it cannot know', async () => {
    const bug = packageBug(refOf('tabulate'));
    const sound = patched(bug.tree, bug.mend);
    const file = 'tabulate/__init__.py';
    const tests = bug.failToPass.filter((id) => bug.apart.includes(id));
    /** Right for as many questions as the tests have, and wrong for those that come after. */
    const knowing = (count: number) => `${sound.get(file)!}
_right, _asked = tabulate, 0
def tabulate(*given, **named):
    global _asked
    _asked += 1
    return _right(*given, **named) + ('' if _asked <= ${count} else '?')
`;
    const asked = async (text: string) => {
      const tree = withFiles(bug.tree, new Map([[file, text]]));
      const { report } = await runApart({ bug, tree, tests, fresh: { sound, askedBy: tests, draw: 'x' } });
      if (!('tests' in report)) throw new Error('no report');
      return { pass: tests.every((id) => report.tests[id]?.[0] === 'passed'), different: report.different };
    };
    expect(await asked(knowing(1000))).toEqual({ pass: true, different: null });
    expect(await asked(knowing(tests.length))).toEqual({
      pass: true,
      different: expect.stringContaining('tabulate.tabulate('),
    });
  });
});

describe.skipIf(!here)(title('a shell in a package'), () => {
  let host: EnvironmentHost;
  beforeAll(async () => {
    host = await EnvironmentHost.open({ modules: [], memoryBytes: 2 ** 30, log: () => undefined });
  });
  afterAll(() => host.close());

  const act = (call: ToolCall, kept?: EpisodeSession, acts: readonly Act[] = []) =>
    host.environments.get('swe')!.call(call, {
      session: { ref: refOf('toolz'), id: 'episode', acts, kept },
      idempotencyKey: 'key',
      attempt: 1,
      signal,
      heartbeat: () => undefined,
      incident: () => undefined,
    });

  test('sees no other copy of the package, and no history', async () => {
    // Not `find /`: on a machine that has just started it takes longer than a command may.
    const look =
      'import glob, sys, toolz; print(toolz.__file__); ' +
      'print([found for folder in {*sys.path, "/root", "/home", "/opt", "/tmp"} - {"", "/work/tree"} ' +
      'for found in glob.glob(folder + "/**/*toolz*", recursive=True)])';
    const command = `python3 -c '${look}'; ls -A | grep -c git`;
    const { observation } = await act({ name: 'bash', arguments: { command } });
    expect(observation.text).toBe('/work/tree/toolz/__init__.py\n[]\n0\n[exit 1]');
  });

  test.each(HOLDERS)('a command in which %s is killed says and leaves the same', async (_, program) => {
    const command = 'echo "A = 1" > toolz/new.py; sleep 1.75; rm README.rst; cat toolz/new.py';
    const call: ToolCall = { name: 'bash', arguments: { command } };
    const again = await killedInCourse(() => act(call), { running: 'sleep\u00001.75', killed: program });
    expect(again.observation.text).toBe('A = 1');
    expect((again.session!.state as { patch: string }).patch).toMatch(
      /^--- a\/README\.rst[^]*\+\+\+ b\/toolz\/new\.py\n/u,
    );
  });
});
