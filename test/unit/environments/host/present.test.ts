import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Json } from '../../../../core/json/json.ts';
import { EnvironmentHost } from '../../../../environments/host/environment-host.ts';
import { environmentFactsOf } from '../../../../environments/host/facts.ts';
import { HostedEnvironment } from '../../../../environments/host/hosted-environment.ts';
import { readPresentation } from '../../../../environments/host/read-presentation.ts';
import { moleculesEnvironment } from '../../../../environments/families/molecules/environment.ts';

const { signal } = new AbortController();
let host: EnvironmentHost;
beforeAll(async () => {
  host = await EnvironmentHost.open({
    modules: [path.resolve('test/support/hostile-environments.ts')],
    memoryBytes: 800 * 2 ** 20,
    log: () => undefined,
  });
});
afterAll(() => host.close());

const present = (subject: Json) => host.environments.get('hostile-present')!.present(subject, { signal });

describe('present() that', () => {
  test.each([
    ['hang', 'showed nothing in 3 s'],
    ['spin', 'no sign of life'],
    ['exit', 'exit code 3'],
    ['huge', 'gave the text of block 1 of 100000000 characters; at most 20000 are taken'],
    ['many', 'gave 5000000 blocks; at most 20 are taken'],
    ['html', 'gave blocks that are no array'],
    ['throws', 'no paper'],
  ])('does %s shows nothing and is named, and the next subject is shown', async (does, why) => {
    await expect(present({ does })).rejects.toMatchObject({
      boundary: 'environment',
      message: expect.stringContaining(why) as string,
    });
    expect(await present({ does: 'fine' })).toEqual([{ kind: 'text', text: 'a subject' }]);
  });
});

test('what a host says is looked at again where it arrives', async () => {
  const svg = '<svg><circle r="4"/></svg>';
  const hosted = new HostedEnvironment(environmentFactsOf(moleculesEnvironment(), 'x.ts'), {
    ask: () => Promise.resolve([{ ok: [{ kind: 'svg', svg, alt: 'a drawing' }] }]),
  });
  await expect(hosted.present({ smiles: 'C' }, { signal })).rejects.toThrow('lacks xmlns');
});

describe('blocks', () => {
  const table = (over: object) => ({ kind: 'table', columns: ['a', 'b'], rows: [['1', 2]], ...over });

  test('have what the contract names, and nothing else', () => {
    expect(readPresentation([{ ...table({}), html: '<b>' }])).toEqual({ value: [table({})] });
  });

  test.each(['', '<?xml version="1.0" encoding="UTF-8"?>\n', '<!-- a mark -->\n'])(
    'a drawing may begin with %j',
    (before) => {
      const svg = `${before}<svg width="4"\n  xmlns='http://www.w3.org/2000/svg'><circle r="4"/></svg>`;
      const drawing = { kind: 'svg', svg, alt: 'a mark' };
      expect(readPresentation([drawing])).toEqual({ value: [drawing] });
    },
  );

  test.each([
    ['a row that is too short', [table({ rows: [['1']] })], '1 cells in row 1'],
    ['a cell that is no text', [table({ rows: [['1', {}]] })], 'no text as a cell'],
    ['too many rows', [table({ rows: Array.from({ length: 201 }, () => ['1', 2]) })], '201 rows'],
    ['a drawing without words', [{ kind: 'svg', svg: '<svg/>', alt: ' ' }], 'no words in the alt'],
    ['HTML', [{ kind: 'html', html: '<b>' }], 'of an unknown kind'],
    [
      'more than a page holds',
      Array.from({ length: 6 }, () =>
        table({ rows: Array.from({ length: 200 }, () => ['x'.repeat(1000), 1]) }),
      ),
      'characters in all',
    ],
  ])('with %s are refused', (_, blocks, why) => {
    expect(readPresentation(blocks)).toMatchObject({ fault: expect.stringContaining(why) as string });
  });
});
