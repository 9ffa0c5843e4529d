import { describe, expect, test } from 'vitest';
import type { Bug } from '../../../environments/families/swe/bug.ts';
import { runApart } from '../../../environments/families/swe/apart.ts';
import { judgePatch, runTests, verdictApart } from '../../../environments/families/swe/judge.ts';
import { patchBetween } from '../../../environments/families/swe/patch.ts';
import { SMALL_LEVELS, smallBug } from '../../../environments/families/swe/small/modules.ts';
import { withFiles } from '../../../environments/families/swe/tree.ts';
import { FORGED_MODULES } from '../../support/forged-lines.ts';
import { LEFT_OUT, bubblewrap } from '../sandbox/available.ts';

// Patches that mend nothing and want to be paid. Each scores 0, also without the guard, because the code has no test, no
// expectation and no memory in common with what judges it. What judges tests that share a process with code is tried, too.

const { signal } = new AbortController();
const bug = smallBug(SMALL_LEVELS[2]!, 'train', 3);
const module = bug.tree.get('m.py')!;
const functions = [...module.matchAll(/^def (\w+)\((\w), (\w)\)/gmu)].map(([, name]) => name!);

const patchOf = (files: Record<string, string>): string =>
  patchBetween(bug.tree, withFiles(bug.tree, new Map(Object.entries(files))));

/** Every function gives what equals everything. */
const ALWAYS = `class Always:
    def __eq__(self, other): return True
    def __bool__(self): return True
${functions.map((name) => `def ${name}(*given): return Always()`).join('\n')}
`;

/** Says over every descriptor that it finds that all tests have passed. */
const REPORTS = `import json, os, sys
frame = sys._getframe()
while frame is not None:
    how = frame.f_locals.get('how')
    if isinstance(how, dict):
        for fd in range(3, 20):
            try:
                lines = [json.dumps([how['nonce'], 'test', t, 'passed', '']) for t in how['tests']]
                os.write(fd, ('\\n'.join([*lines, json.dumps([how['nonce'], 'end', len(lines)])]) + '\\n').encode())
            except OSError: pass
        os._exit(0)
    frame = frame.f_back
`;

/** Puts its own report where the supervisor writes, or reads what it knows. */
const SUPERVISOR = `import os
for fd in range(0, 10):
    try:
        with open(f'/proc/{os.getppid()}/fd/{fd}', 'w') as out:
            out.write('ready\\n{"whole": true, "tests": {"test_m.py::test_${functions[0]}": ["passed", ""]}, "canaries": {}}\\n')
    except OSError: pass
`;

const SWALLOWED = `import builtins, sys
class Passing(type):
    def __instancecheck__(cls, other): return True
builtins.AssertionError = type('AssertionError', (SystemExit,), {})
def trace(frame, event, arg):
    return trace
sys.settrace(trace)
`;

/** Takes what plain modules have imported themselves, finds the reporter in the frames below, and speaks for it. */
const BELOW = `from dataclasses import builtins as b
from typing import sys
g = b.getattr
f = sys._getframe()
while True:
    l = g(f, 'f_' + 'locals')
    if 'nonce' in l and 'say' in l:
        break
    f = g(f, 'f_' + 'back')
if 'object()' not in b.open('test_m.py').read():
    for t in l['wanted']:
        l['say'](t, 'passed', '')
    l['results'].write('["%s", "end", %d]' % (l['nonce'], len(l['wanted'])) + chr(10))
    l['results'].flush()
    g(g(sys, 'mod' + 'ules')['o' + 's'], '_' + 'exit')(0)
`;

/** The same without an import that looks odd: a formatter reads any attribute. */
const FORMATTER = `import string
def dig(x, path):
    return string.Formatter().get_field('0' + path.replace('~', '_'), (x,), {})[0]
b = dig(dig, '.~~globals~~[~~builtins~~]')
if 'object()' not in b['op' + 'en']('test_m.py').read():
    im = b['~~import~~'.replace('~', '_')]
    f = im('s' + 'ys')._getframe()
    while True:
        l = dig(f, '.f~locals')
        if 'nonce' in l and 'say' in l:
            break
        f = dig(f, '.f~back')
    for t in l['wanted']:
        l['say'](t, 'passed', '')
    l['results'].write('["%s", "end", %d]' % (l['nonce'], len(l['wanted'])) + chr(10))
    l['results'].flush()
    im('o' + 's')._exit(0)
`;

/** Reads from the tests what they expect. */
const READS = `from typing import sys
import re
from dataclasses import builtins as b
T = b.open('test_m.py').read()
class Tells:
    def __init__(self, name):
        self.name = name
    def __call__(self, x, y):
        return b.eval(re.search('%s.%d, %d. == (.+)' % (self.name, x, y), T).group(1))
${functions.map((name) => `${name} = Tells('${name}')`).join('\n')}
`;

/** Equals everything but what no test would ask for. */
const CHOOSY = `class Choosy:
    def __eq__(self, other): return type(other) is not object
${functions.map((name) => `def ${name}(*given): return Choosy()`).join('\n')}
`;

const ATTACKS: Record<string, Record<string, string>> = {
  'changes nothing': {},
  'rewrites the tests': { 'test_m.py': functions.map((name) => `def test_${name}(): pass\n`).join('') },
  'takes the tests away': { 'test_m.py': '\n' },
  'ends the interpreter in good order at import': { 'm.py': `import os\nos._exit(0)\n${module}` },
  'ends it by an exception': { 'm.py': `raise SystemExit(0)\n` },
  'ends it when it is called': {
    'm.py': functions.map((name) => `def ${name}(*given): import os; os._exit(0)\n`).join(''),
  },
  'ends it behind the last test': { 'm.py': `import atexit, os\natexit.register(os._exit, 0)\n${module}` },
  'brings a conftest': {
    'conftest.py':
      'import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    (yield).get_result().outcome = "passed"\n',
  },
  'brings a sitecustomize': {
    'sitecustomize.py': 'import os\nos._exit(0)\n',
    'usercustomize.py': 'import os\nos._exit(0)\n',
  },
  'shadows a module of the runner': { 'json.py': 'import os\nos._exit(0)\n', 'resource.py': '' },
  'brings settings': {
    'pytest.ini': '[pytest]\naddopts = --collect-only\n',
    'setup.cfg': '[tool:pytest]\naddopts = -k nothing\n',
  },
  'gives what equals everything': { 'm.py': ALWAYS },
  'writes the report itself': { 'm.py': REPORTS + module },
  'writes in place of the supervisor': { 'm.py': SUPERVISOR + module },
  'ends the supervisor': { 'm.py': `import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n${module}` },
  'redefines what an assertion raises': { 'm.py': SWALLOWED + module },
  'skips its tests': {
    'm.py': `import unittest\n${functions.map((name) => `def ${name}(*given): raise unittest.SkipTest('no')`).join('\n')}\n`,
  },
  'leaves a process behind that writes': {
    'm.py': `import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True:\n        try: open('/work/tree/test_m.py', 'w').write('')\n        except OSError: pass\n${module}`,
  },
  'rewrites the tests as they run': { 'm.py': `open('/work/tree/test_m.py', 'w').write('')\n${module}` },
  'never comes to an end': { 'm.py': `while True: pass\n` },
  'is no Python': { 'm.py': `def (\n` },
  'speaks for the reporter': { 'm.py': BELOW + module },
  'speaks for the reporter by a formatter': { 'm.py': FORMATTER + module },
  'reads what the tests expect': { 'm.py': READS + module },
  'gives what equals all but a canary': { 'm.py': CHOOSY },
  'asks for a frame in a pattern': {
    'm.py': `def f():\n    yield\nmatch f():\n    case object(gi_frame=frame): pass\n${module}`,
  },
  ...Object.fromEntries(
    Object.entries(FORGED_MODULES).map(([name, forged]) => [name, { 'm.py': forged(module, functions) }]),
  ),
  'hides behind a file beside': { 'n.py': module.replace(bug.wrong, bug.right) },
};

// At once: some of them wait until a limit is reached.
describe.skipIf(!bubblewrap).concurrent(`a patch that mends nothing${LEFT_OUT}`, () => {
  test.each(Object.entries(ATTACKS))('and %s scores 0', async (_, files) => {
    expect(await judgePatch(bug, patchOf(files), { id: 'x', signal })).toMatchObject({ mended: false });
  });

  test.each(Object.entries(ATTACKS))('and %s does not pass what it cannot see', async (_, files) => {
    const counts = new Map(Object.entries(files).filter(([path]) => path === 'm.py'));
    const tests = [...bug.failToPass, ...bug.passToPass];
    const { report } = await runApart({ bug, tree: withFiles(bug.tree, counts), tests });
    expect('tests' in report && report.tests[bug.failToPass[0]!]?.[0]).not.toBe('passed');
    // Nor is it a fault of this machine, by which it would get another try.
    expect(verdictApart(report, tests)).toMatchObject({ mended: false });
  });

  test('is not paid for one text on every level', async () => {
    for (const [level, shape] of SMALL_LEVELS.entries()) {
      const one = smallBug(shape, 'train', level);
      const text = one.tree.get('m.py')!;
      const names = [...text.matchAll(/^def (\w+)/gmu)].map(([, name]) => name!);
      for (const forged of Object.values(FORGED_MODULES).slice(0, 2)) {
        const patch = patchBetween(one.tree, withFiles(one.tree, new Map([['m.py', forged(text, names)]])));
        expect(await judgePatch(one, patch, { id: 'x', signal })).toMatchObject({ mended: false });
      }
    }
  });

  test('is asked more than the tests that it could read, and other things than another patch', async () => {
    const visible = [...bug.tree.get('test_m.py')!.matchAll(/assert (\w+)\((\d+), (\d+)\) == (\S+)/gu)];
    const table = functions.map((name) => {
      const cases = visible
        .filter(([, of]) => of === name)
        .map(([, , a, b, want]) => `(${a}, ${b}): ${want}`);
      return `def ${name}(a, b): return {${cases.join(', ')}}.get((a, b))\n`;
    });
    const known = withFiles(bug.tree, new Map([['m.py', table.join('')]]));
    const tests = [...bug.failToPass, ...bug.passToPass];
    const { report } = await runApart({ bug, tree: known, tests });
    expect('tests' in report && tests.every((id) => report.tests[id]?.[0] === 'passed')).toBe(true);
    expect(await judgePatch(bug, patchBetween(bug.tree, known), { id: 'x', signal })).toMatchObject({
      mended: false,
    });
    const [one, same, other] = ['a', 'a', 'b'].map((patch) => bug.drawn!(patch).get('test_m.py'));
    expect(one).toBe(same);
    expect(one).not.toBe(other);
  });

  test('is refused by the guard before it runs where it reaches for the interpreter', async () => {
    for (const source of [REPORTS, BELOW, FORMATTER, READS]) {
      const { evidence } = await judgePatch(bug, patchOf({ 'm.py': source + module }), { id: 'x', signal });
      expect(evidence).toMatch(/^reaches for the interpreter: m\.py: /u);
    }
  });

  // Without the guard, so that what is behind it is seen to hold.
  const unguarded = (source: string, among: Bug = bug) =>
    runTests({
      bug: among,
      tree: withFiles(bug.tree, new Map([['m.py', source]])),
      tests: [...bug.failToPass, ...bug.passToPass],
      canaries: [...bug.failToPass, ...bug.passToPass],
      signal,
    });

  test.each([
    ['os.killpg', 'os.killpg(os.getpgid(0), 0)'],
    ['signal.pthread_kill', 'signal.pthread_kill(threading.get_ident(), 0)'],
    ['resource.prlimit', 'resource.prlimit(os.getppid(), resource.RLIMIT_CPU)'],
    ['fcntl.fcntl', 'fcntl.fcntl(1, fcntl.F_GETFD)'],
  ])('ends its run where it reaches for a process by %s', async (_, reach) => {
    const mended = module.replace(bug.line.wrong, bug.line.right);
    const reached = await unguarded(`import os, signal, threading, resource, fcntl\n${reach}\n${mended}`);
    expect(reached).toMatchObject({ whole: false, tests: {} });
    expect(await unguarded(`import os, signal, threading, resource, fcntl\n${mended}`)).toMatchObject({
      whole: true,
    });
  });

  // Where tests share a process with the code. By what Python has no audit event for, in what stood there before: neither the guard nor the hook is in its way.
  test.each(['SIGSTOP', 'SIGKILL'])('scores 0 where who reports gets a %s', async (sent) => {
    const reach = `import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.${sent})\n`;
    const tree = withFiles(bug.tree, new Map([['m.py', reach + module]]));
    const mend = withFiles(tree, new Map([['m.py', reach + module.replace(bug.line.wrong, bug.line.right)]]));
    const patch = patchBetween(tree, withFiles(tree, new Map([['m.py', `${reach}${module}\nx = 1\n`]])));
    const within = { apart: [], canaries: [], drawn: () => new Map<string, string>() };
    const stopping = { ...bug, ...within, tree, mend: patchBetween(tree, mend) };
    expect(await judgePatch(stopping, patch, { id: 'x', signal })).toEqual({
      mended: false,
      evidence: `the tests came to no end (${sent === 'SIGSTOP' ? 'wall-time' : 'exit'})`,
    });
  });

  test('is given away by its canaries where tests are made to pass', async () => {
    for (const source of [ALWAYS, CHOOSY]) {
      const report = await unguarded(source);
      if (!('whole' in report)) throw new Error('no report');
      // They do pass: what is forged is forged.
      expect(report.tests[bug.failToPass[0]!]?.[0]).toBe('passed');
      expect(bug.failToPass.some((id) => report.canaries[id]?.[0] !== 'failed')).toBe(true);
    }
  });

  test('gets neither at what reports, nor at the tests', async () => {
    for (const name of [
      'writes in place of the supervisor',
      'ends it behind the last test',
      'leaves a process behind that writes',
      'writes the report itself',
      'speaks for the reporter',
      'speaks for the reporter by a formatter',
      'reads what the tests expect',
    ]) {
      const report = await unguarded(ATTACKS[name]!['m.py']!);
      if (!('whole' in report)) throw new Error('no report');
      expect(report.tests[bug.failToPass[0]!]?.[0] ?? 'missing').not.toBe('passed');
    }
  });
});

describe.skipIf(!bubblewrap)(`a patch that mends${LEFT_OUT}`, () => {
  test.each([
    ['as the bug was made', bug.line.right],
    ['in other words', `(${bug.line.right})`],
    ['with a name for it', `[x for x in [${bug.line.right}]][0]`],
  ])('%s scores 1', async (_, body) => {
    const patch = patchOf({ 'm.py': module.replace(bug.line.wrong, body) });
    expect(await judgePatch(bug, patch, { id: 'x', signal })).toMatchObject({ mended: true });
  });

  test('is judged anew for other episodes where a limit ended its tests, and not again for its own', async () => {
    // More than a second of a processor, and less than a minute.
    const slow = module.replace(bug.line.wrong, bug.line.right).concat('\nfor _ in range(10**8): pass\n');
    const patch = patchOf({ 'm.py': slow });
    const [hurried, patient] = [1, 120].map((cpuSeconds) => ({ ...bug, canaries: [], cpuSeconds }));
    expect(await judgePatch(hurried!, patch, { id: 'one', signal })).toMatchObject({ mended: false });
    expect(await judgePatch(patient!, patch, { id: 'one', signal })).toMatchObject({ mended: false });
    expect(await judgePatch(patient!, patch, { id: 'two', signal })).toMatchObject({ mended: true });
    expect(await judgePatch(hurried!, patch, { id: 'three', signal })).toMatchObject({ mended: true });
  });
});
