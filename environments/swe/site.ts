import { existsSync } from 'node:fs';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import type { Mount } from '../sandbox/contract.ts';
import { preparedFolder } from './packages/prepared-folder.ts';

/**
 * pytest, as tests see it in the sandbox.
 * Throws GradusError('environment', 'swe-not-set-up') where `npm run setup:swe` has not run.
 */
export function testSite(): Mount {
  const from = path.join(preparedFolder(), 'site');
  if (!existsSync(from)) throw notSetUp();
  return { at: '/site', from };
}

export const notSetUp = (): GradusError =>
  new GradusError(
    'environment',
    'swe-not-set-up',
    'The environment swe needs its packages and pytest, which are not there: run "npm run setup:swe" once.',
  );
