import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Observation } from '../../../core/episode/episode.ts';
import { EnvironmentHost } from '../../../environments/host/environment-host.ts';
import { LEVELS, problemAt } from '../../../environments/families/tool-math/problems.ts';
import { HOLDERS, killedInCourse } from '../../support/processes-below.ts';
import { bubblewrap, LEFT_OUT } from '../sandbox/available.ts';

const { signal } = new AbortController();

describe.skipIf(!bubblewrap)(`tool mathematics${LEFT_OUT}`, () => {
  let host: EnvironmentHost;
  beforeAll(async () => {
    host = await EnvironmentHost.open({ modules: [], memoryBytes: 2 ** 30, log: () => undefined });
  });
  afterAll(() => host.close());

  const python = async (code: string, key = code): Promise<Observation> => {
    const ref = { environment: 'tool-math', split: 'train', level: 1, index: 0 } as const;
    const { observation } = await host.environments.get('tool-math')!.call(
      { name: 'python', arguments: { code } },
      {
        session: { ref, id: 'episode', acts: [] },
        idempotencyKey: key,
        attempt: 1,
        signal,
        heartbeat: () => undefined,
        incident: () => undefined,
      },
    );
    return observation;
  };

  test('every expert program prints the answer, which was computed without Python', async () => {
    const problems = LEVELS.flatMap((level) =>
      Array.from({ length: 20 }, (_, i) => problemAt('test', level, i)),
    );
    // All in one interpreter: starting one takes longer than the program.
    const { text } = await python(
      problems
        .map(({ code }) => code)
        .join('\n')
        .slice(0, 7_999)
        .replace(/\n[^\n]*$/u, ''),
    );
    const printed = text.split('\n');
    expect(printed.length).toBeGreaterThan(60);
    expect(printed).toEqual(problems.slice(0, printed.length).map(({ answer }) => String(answer)));
  });

  test('a program that fails is told its last line, and one that prints nothing so', async () => {
    expect(await python('print(1)\nx = 1/0')).toMatchObject({
      text: 'error: ZeroDivisionError: division by zero',
      error: 'tool-error',
    });
    expect(await python('x = 1')).toMatchObject({ text: 'nothing was printed' });
  });

  test('a program draws the same random numbers in each process', async () => {
    const drawn = 'import random; print(random.random(), "random" in dir(), __name__)';
    const { text } = await python(`${drawn} # once`);
    expect(text).toBe('0.8444218515250481 True __main__');
    expect((await python(`${drawn} # and again`)).text).toBe(text);
    expect((await python('print(dir())')).text).not.toContain('random');
  });

  test('a program finds nothing of an earlier one', async () => {
    await python('open("left", "w").write("x"); import os; os.environ["LEFT"] = "x"; left = 1; print(1)');
    const { text } = await python(
      'import os; print(os.path.exists("left"), "LEFT" in os.environ, "left" in dir())',
    );
    expect(text).toBe('False False False');
  });

  test.each(HOLDERS)(
    'a call in which %s is killed says the same when it is made again',
    async (_, program) => {
      // Long enough to be met in its course, and its own: nothing keeps its output yet.
      const code = `# ${program}\ns = 0\nfor k in range(12_000_000): s += k\nprint(s)`;
      const { text } = await killedInCourse((again) => (again ? python(code, 'again') : python(code)), {
        running: 'range(12_000_000)',
        killed: program,
      });
      expect(text).toBe('71999994000000');
    },
  );
});
