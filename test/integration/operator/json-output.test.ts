import { afterAll, beforeAll, expect, test } from 'vitest';
import { summarizeRun } from '../../../cli/curriculum-report.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { assertOutput } from '../../support/json-output.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// What commands print with --json, of a run that there was. `gradus` checks every line by its schema.

const RUN = 'printed';
let installation: TestInstallation;
let gradus: ReturnType<typeof gradusCommand>;
let result: CurriculumResult;
let progress: Progress;
let episode: string;

beforeAll(async () => {
  installation = await startTestInstallation();
  const { settings } = installation;
  const handle = await installation.runs.start(RUN, briefSpec());
  result = await handle.result();
  progress = await installation.runs.progress(handle, () => true);
  const { temporalAddress: address, namespace, store } = settings;
  gradus = gradusCommand({ temporal: { address, namespace }, objectStore: { ...store, useSSL: false } });
  const { stdout } = await gradus('find', RUN, '--split', 'train', '--json', '--limit', '1');
  ({ place: episode } = JSON.parse(stdout) as { place: string });
}, 600_000);
afterAll(() => installation?.remove());

test.each([
  'runs',
  `why ${RUN}`,
  `metrics ${RUN}`,
  `checkpoints ${RUN}`,
  'operations',
  'operations --bytes',
  `find ${RUN}`,
  `find ${RUN} --text 1`,
])('%s', async (line) => {
  const { code, stdout, stderr } = await gradus(...line.split(' '), '--json');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).not.toBe('');
});

test.each(['episode', 'timeline', 'replay'])('%s of an episode', async (command) => {
  const { stdout, stderr } = await gradus(command, episode, '--json');
  expect(stdout, stderr).not.toBe('');
});

test('reweigh of a step', async () => {
  const [run, stage, step] = episode.split('/');
  const { stdout, stderr } = await gradus('reweigh', `${run}/${stage}/${step}`, '--json');
  expect(stdout, stderr).not.toBe('');
});

test('train', () => {
  const summary = summarizeRun(result, progress, 0.95, 1);
  assertOutput(['train'], JSON.stringify(summary));
});
