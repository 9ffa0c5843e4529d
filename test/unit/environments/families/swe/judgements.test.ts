import { expect, test } from 'vitest';
import { Judgements, type Judged } from '../../../../../environments/families/swe/judgements.ts';

interface Verdict {
  by: string;
}

/** A judge who says what it is told to, and how often it was asked. */
function judge() {
  let say!: (judged: Judged<Verdict>) => void;
  let fail!: (reason: unknown) => void;
  const said = new Promise<Judged<Verdict>>((resolve, reject) => {
    say = resolve;
    fail = reject;
  });
  return { say, fail, ask: () => said };
}
const never = (): Promise<never> => Promise.reject(new Error('judged again'));
const { signal } = new AbortController();

test('what has begun is seen to its end for who asks again, also when nobody waited any longer', async () => {
  const judgements = new Judgements<Verdict>();
  const impatient = new AbortController();
  const first = judge();
  const asked = judgements.of('patch', { id: 'a', signal: impatient.signal }, first.ask);
  impatient.abort(new Error('an hour is over'));
  const again = judgements.of('patch', { id: 'a', signal }, never);
  first.say({ verdict: { by: 'tests' }, limited: false });
  expect(await again).toEqual({ by: 'tests' });
  expect(await asked).toEqual({ by: 'tests' });
  // Of any episode: samples of a group come to the same patch.
  expect(await judgements.of('patch', { id: 'b', signal }, never)).toEqual({ by: 'tests' });
});

test('what a limit has spoken is of its episode alone', async () => {
  const judgements = new Judgements<Verdict>();
  const saying = (by: string, limited: boolean) => async () => ({ verdict: { by }, limited });
  const limited = await judgements.of('patch', { id: 'a', signal }, saying('clock', true));
  expect(await judgements.of('patch', { id: 'a', signal }, never)).toBe(limited);
  expect(await judgements.of('patch', { id: 'b', signal }, saying('tests', false))).toEqual({ by: 'tests' });
  expect(await judgements.of('patch', { id: 'c', signal }, never)).toEqual({ by: 'tests' });
});

test('what failed is judged again, and who has given up by its turn is not judged', async () => {
  const judgements = new Judgements<Verdict>();
  const broken = judge();
  const asked = judgements.of('patch', { id: 'a', signal }, broken.ask);
  broken.fail(new Error('the sandbox was lost'));
  await expect(asked).rejects.toThrow('the sandbox was lost');
  const gone = AbortSignal.abort(new Error('given up'));
  await expect(judgements.of('patch', { id: 'a', signal: gone }, never)).rejects.toThrow('given up');
  const verdict = judgements.of('patch', { id: 'a', signal }, async () => ({
    verdict: { by: 'tests' },
    limited: false,
  }));
  expect(await verdict).toEqual({ by: 'tests' });
});
