import { expect, test } from 'vitest';
import { storeError } from '../../../store/objects/store-errors.ts';

const CALL = { address: 'http://127.0.0.1:9000', doing: 'list runs/' };
const failed = (code: string): string =>
  storeError(Object.assign(new Error('it failed'), { code }), CALL).message;

test('of a store that is slow nobody is told to start it', () => {
  expect(failed('ETIMEDOUT')).toContain('It is slow, or it hangs');
  expect(failed('ETIMEDOUT')).not.toContain('Start its server');
  expect(failed('ECONNREFUSED')).toContain('Start its server');
});
