import { describe, expect, test } from 'vitest';
import { runApart } from '../../../environments/families/swe/apart.ts';
import { verdictApart } from '../../../environments/families/swe/judge.ts';
import { BROKEN, FORGED_ANSWERS, HONEST_TESTS, MENDED, SOUND } from '../../support/forged-answers.ts';
import { LEFT_OUT, bubblewrap } from '../sandbox/available.ts';

// A package whose tests use objects, functions of their own and context managers: what code says of those is not to be
// believed, and what it is asked afresh tells. All without the guard, which refuses most of it.

/** What tests with this body say of a package, which are asked afresh where it passes them. */
async function verdictOn(p: string, body: string) {
  const tests = ['test_p.py::test_it'];
  const tree = new Map([
    ['p.py', p],
    ['test_p.py', `import p\ndef test_it():\n    ${body}\n`],
  ]);
  const bug = {
    sourceRoots: [''],
    sources: ['p.py'],
    tests: [],
    testFiles: ['test_p.py'],
    style: 'plain' as const,
    cpuSeconds: 5,
  };
  const fresh = { sound: new Map([...tree, ['p.py', SOUND]]), askedBy: tests, draw: 'one' };
  const { report } = await runApart({ bug, tree, tests, fresh });
  return verdictApart(report, tests);
}

describe.skipIf(!bubblewrap)(`a patch of a package that mends nothing${LEFT_OUT}`, () => {
  test.each(Object.entries(FORGED_ANSWERS))('and %s is not paid', async (_, [forged, body]) => {
    expect(await verdictOn(SOUND, body)).toMatchObject({ mended: true });
    expect(await verdictOn(BROKEN + forged, body)).toMatchObject({ mended: false });
  });
});

describe.skipIf(!bubblewrap)(`a package that is written otherwise and does the same${LEFT_OUT}`, () => {
  test.each(HONEST_TESTS)('is paid where tests ask %j', async (body) => {
    expect(await verdictOn(BROKEN, body)).toMatchObject({ mended: false });
    expect(await verdictOn(MENDED, body)).toMatchObject({ mended: true });
  });
});
