import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { STATE_DIR } from '../../../../cli/connection.ts';
import { exportLine } from '../../../../cli/commands/dev.ts';

test('what is to be pasted into a shell sets paths, whatever is in them, and runs nothing', () => {
  const folder = `/tmp/$(echo ran) "it's" \`echo ran\``;
  const line = exportLine({
    address: '127.0.0.1:7233',
    bin: `${folder}/bin`,
    stateDir: folder,
    modules: [`${folder}/a.ts`, '/b.ts'],
    ofPackage: ['/b.ts'],
  });
  const script = `${line}; printf '%s\n' "$TEMPORAL_ADDRESS" "$PATH" "$${STATE_DIR}" "$GRADUS_ENVIRONMENTS"`;
  const printed = execFileSync('/bin/sh', ['-c', script], { env: { PATH: '/usr/bin' }, encoding: 'utf8' });
  expect(printed.trim().split('\n')).toEqual([
    '127.0.0.1:7233',
    `${folder}/bin:/usr/bin`,
    folder,
    `${folder}/a.ts,/b.ts`,
  ]);
});

test('modules that package.json names are left to package.json, which would have no say in that terminal any more', () => {
  const of = { address: '127.0.0.1:7233', bin: '/bin', stateDir: '/state', modules: ['/a.ts'] };
  expect(exportLine({ ...of, ofPackage: ['/a.ts'] })).not.toContain('GRADUS_ENVIRONMENTS');
  expect(exportLine({ ...of, ofPackage: ['/a.ts', '/b.ts'] })).toContain("GRADUS_ENVIRONMENTS='/a.ts'");
});
