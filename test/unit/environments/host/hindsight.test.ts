import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Episode, EpisodeStatus, Observation } from '../../../../core/episode/episode.ts';
import { GradusError } from '../../../../core/errors.ts';
import type { Incident } from '../../../../core/episode/incidents.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { environmentWith } from '../../activities/test-environment.ts';

const { signal } = new AbortController();
/** Task 21 is answered by 21. */
const ref = { environment: 'library', split: 'train' as const, level: 1, index: 21 };
const attempt = (status: EpisodeStatus, observation?: Observation): Pick<Episode, 'turns' | 'status'> => ({
  status,
  turns: observation
    ? [{ start: 0, end: 1, text: '', action: { kind: 'malformed', reason: '' }, observation }]
    : [],
});
const answered = (answer: string) => attempt({ kind: 'answered', answer });

describe('a hint', () => {
  const hintOf = async (episode: Pick<Episode, 'turns' | 'status'>, evidence: string[] = []) => {
    const [hint] = await hostedHere(environmentWith([])).hints([{ ref, episode, evidence }], { signal });
    return hint;
  };

  test('says what tools refused, how the attempt ended, and what verifiers said', async () => {
    const refused = { text: 'error: no tool look', error: 'unknown-tool' as const };
    expect(await hintOf(attempt({ kind: 'answered', answer: '7' }, refused), ['7 is no page'])).toBe(
      'An earlier attempt failed: error: no tool look; the answer 7 was wrong; 7 is no page. Try again.',
    );
    expect(await hintOf(attempt({ kind: 'truncated', limit: 'turns' }))).toContain(
      'there was no answer within the limit of turns',
    );
    expect(await hintOf(attempt({ kind: 'failed', boundary: 'tool', reason: 'out of paper' }))).toContain(
      'a call failed: out of paper',
    );
    expect(await hintOf(attempt({ kind: 'answered', answer: '7' }, { text: 'page 7' }))).not.toContain(
      'page',
    );
  });

  test('never has the expected answer in it, however verifiers, tools and the attempt wrote it', async () => {
    const written = fc.constantFrom('21', ' 2 1 ', '2,1', '２１', '0.21', 'for 21!');
    await fc.assert(
      fc.asyncProperty(fc.array(written), written, written, async (evidence, answer, text) => {
        const hint = await hintOf(
          attempt({ kind: 'answered', answer }, { text, error: 'tool-error' }),
          evidence,
        );
        expect((hint as string).normalize('NFKC').replace(/\D/gu, '')).not.toContain('21');
      }),
    );
  });

  test('is no longer than a prompt has room for', async () => {
    const long = 'x'.repeat(5000);
    const hint = await hintOf(attempt({ kind: 'answered', answer: long }), [long, `${long}y`]);
    expect((hint as string).length).toBeLessThan(1100);
  });

  test('is what the environment says, where it says anything', async () => {
    const speaking = environmentWith([], {
      hint: ({ task, answer }) => (answer === null ? null : `${answer}? It is ${task.answer}.`),
    });
    const answers = await hostedHere(speaking).hints(
      [
        { ref, episode: answered('7'), evidence: [] },
        { ref, episode: attempt({ kind: 'truncated', limit: 'tokens' }), evidence: [] },
      ],
      { signal },
    );
    expect(answers).toEqual(['7? It is 21.', expect.stringContaining('An earlier attempt failed')]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('lost');
      },
      'threw: lost',
    ],
    ['is no text', () => 7 as never, 'gave 7, which is no hint'],
  ])('that %s is the fault of the environment', async (_, hint, message) => {
    const incidents: Incident[] = [];
    const [said] = await hostedHere(environmentWith([], { hint })).hints(
      [{ ref, episode: answered('7'), evidence: [] }],
      { signal, incident: (one) => void incidents.push(one) },
    );
    expect(said).toBeInstanceOf(GradusError);
    expect(said).toMatchObject({
      boundary: 'environment',
      message: expect.stringContaining(message) as string,
    });
    expect(incidents).toMatchObject([{ function: 'hint()' }]);
  });
});

describe('another task', () => {
  const relabels = environmentWith([], {
    relabel: ({ answer }) => (answer === null ? null : { prompt: `Find ${answer}`, answer }),
  });
  const relabelled = (environment: typeof relabels, episode: Pick<Episode, 'turns' | 'status'>) =>
    hostedHere(environment).relabellings(['exact-match'], [{ ref, episode }], { signal });

  test('is what the environment says that the episode solved, with the word of the verifiers on it', async () => {
    expect(await relabelled(relabels, answered('7'))).toMatchObject([
      { prompt: 'Find 7', said: [{ verifier: 'exact-match', version: '4', score: 1, evidence: '7 for 7' }] },
    ]);
    const wrong = environmentWith([], { relabel: () => ({ prompt: 'Find 8', answer: '8' }) });
    expect(await relabelled(wrong, answered('7'))).toMatchObject([{ said: [{ score: 0 }] }]);
  });

  test('is none where the environment knows of none, and a fault where it gives what is no task', async () => {
    expect(await relabelled(environmentWith([]), answered('7'))).toEqual([null]);
    expect(await relabelled(relabels, attempt({ kind: 'truncated', limit: 'turns' }))).toEqual([null]);
    const broken = environmentWith([], { relabel: () => ({ answer: '7' }) as never });
    expect(await relabelled(broken, answered('7'))).toMatchObject([
      { boundary: 'environment', message: expect.stringContaining('no task') as string },
    ]);
  });

  test('can be known of before anything runs', () => {
    expect([relabels, environmentWith([])].map((one) => hostedHere(one).relabels)).toEqual([true, false]);
  });
});
