import { describe, expect, test } from 'vitest';
import type { Action, Turn } from '../../../../core/episode/episode.ts';
import type { Json } from '../../../../core/json/json.ts';
import type { Candidate, FastVerifier } from '../../../../environments/contract/environment.ts';
import { environmentReward } from '../../../../environments/verifiers/environment-reward.ts';
import { executable } from '../../../../environments/verifiers/executable.ts';
import { exactMatch, normalizeAnswer } from '../../../../environments/verifiers/exact-match.ts';
import { formatVerifier } from '../../../../environments/verifiers/format.ts';
import { toolShaping } from '../../../../environments/verifiers/tool-shaping.ts';

const call = (name: string, args: Json): Action => ({ kind: 'call', call: { name, arguments: args } });
const bad: Action = { kind: 'malformed', reason: 'text outside tags' };
const final: Action = { kind: 'answer', answer: '19' };

function candidate(actions: Action[], answer: string | null, expected: string | undefined = '19'): Candidate {
  const turns = actions.map((action): Turn => ({ start: 0, end: 0, text: '', action }));
  return {
    task: {
      ref: { environment: 'calculator', split: 'train', level: 1, index: 0 },
      prompt: '12+7',
      ...(expected === undefined ? {} : { answer: expected }),
    },
    episode: {
      turns,
      status: answer === null ? { kind: 'truncated', limit: 'turns' } : { kind: 'answered', answer },
    },
    answer,
    tools: ['calculator'],
  };
}

async function score(verifier: FastVerifier, ...of: Parameters<typeof candidate>): Promise<number> {
  const verdict = await verifier.verify(candidate(...of), { signal: new AbortController().signal });
  if (verdict.kind !== 'score') throw new Error(verdict.reason);
  return verdict.score;
}

describe('exact match', () => {
  test.each([
    ['1,234', '1234'],
    ['1 234 567', '1234567'],
    ['1\u202f234', '1234'],
    ['+7', '7'],
    ['\u22127', '-7'],
    ['- 7', '-7'],
    ['007', '7'],
    ['7.', '7'],
    ['7.00', '7'],
    ['7.50', '7.5'],
    ['.5', '0.5'],
    ['-0', '0'],
    ['-0.0', '0'],
    ['1,234.50', '1234.5'],
    ['١٢', '١٢'],
    ['１９', '19'],
    ['１，２３４．５', '1234.5'],
    ['𝟏𝟗', '19'],
    ['\uFF0D7', '-7'],
    ['\u20137', '-7'],
    ['1\u2009234', '1234'],
    ['12345678901234567890.0', '12345678901234567890'],
    ['4\u200b', '4'],
    ['\ufeff1,\u2060234', '1234'],
    ['\u200e-5\u00ad', '-5'],
  ])('%s and %s are the same number', (one, other) => {
    expect(normalizeAnswer(one)).toBe(normalizeAnswer(other));
  });

  test.each([
    ['12345678901234567890', '12345678901234567891'],
    ['1,23', '123'],
    ['1 2', '12'],
    ['19 apples', '19'],
    ['7.05', '7.5'],
    ['-7', '7'],
    ['.', '0'],
    ['-', '0'],
    ['', '0'],
    ['5²', '52'],
    ['5₂', '52'],
    ['5½', '51/2'],
    ['½', '12'],
    ['⑩', '10'],
    ['⒈', '1.'],
    ['²', '2'],
    ['⁻7', '-7'],
    ['1\n234', '1234'],
    ['1   234', '1234'],
    ['0,123', '123'],
    ['000,123', '123'],
    ['5\u200b2', '52'],
    ['٥', '5'],
    // A joiner changes how Persian and Hindi letters look.
    ['می\u200cخواهم', 'میخواهم'],
  ])('%s and %s are not', (one, other) => {
    expect(normalizeAnswer(one)).not.toBe(normalizeAnswer(other));
  });

  test('white space around and within text does not matter, letters do', () => {
    expect(normalizeAnswer('  the\n red   fox ')).toBe('the red fox');
    expect(normalizeAnswer('The')).not.toBe(normalizeAnswer('the'));
  });

  test('scores right, wrong and missing answers, and abstains where nothing is expected', async () => {
    expect(await score(exactMatch(), [final], ' 19.0 ')).toBe(1);
    expect(await score(exactMatch(), [final], '18')).toBe(0);
    expect(await score(exactMatch(), [], null)).toBe(0);
    const task = { ...candidate([final], '19').task };
    delete task.answer;
    expect(
      await exactMatch().verify(
        { ...candidate([final], '19.0'), task },
        { signal: new AbortController().signal },
      ),
    ).toMatchObject({ kind: 'abstain', canonical: '19' });
  });
});

describe('format', () => {
  test('is the share of well-formed turns, and wants an answer at the end', async () => {
    const good = call('calculator', { expression: '12+7' });
    expect(await score(formatVerifier(), [good, final], '19')).toBe(1);
    expect(await score(formatVerifier(), [bad, good, final, final], '19')).toBe(0.75);
    expect(await score(formatVerifier(), [good, good, bad], null)).toBe(0.5);
    expect(await score(formatVerifier(), [], null)).toBe(0);
  });

  test('wants none where the environment ended the episode', async () => {
    const ended = candidate([call('move', { to: 1 }), call('move', { to: 2 })], null);
    ended.episode.status = { kind: 'ended' };
    const verdict = await formatVerifier().verify(ended, { signal: new AbortController().signal });
    expect(verdict).toMatchObject({ kind: 'score', score: 1, evidence: '0 malformed' });
  });
});

describe('executable', () => {
  const answered = async (...errors: (NonNullable<Turn['observation']>['error'] | null)[]) => {
    const one = candidate(
      errors.map(() => call('python', { code: '1/0' })),
      '19',
    );
    one.episode.turns = one.episode.turns.map((turn, i) => ({
      ...turn,
      observation: { text: 'x', ...(errors[i] && { error: errors[i] }) },
    }));
    return executable().verify(one, { signal: new AbortController().signal });
  };

  test('is lost by one call that its tool could not carry out, whatever the others did', async () => {
    expect(await answered(null, null)).toMatchObject({ score: 1, evidence: 'calls that failed: 0' });
    expect(await answered(null, 'tool-error')).toMatchObject({ score: 0, evidence: 'calls that failed: 1' });
    expect(await answered('unknown-tool', 'invalid-arguments')).toMatchObject({ score: 0 });
    expect(await answered()).toMatchObject({ score: 1 });
  });

  test('leaves malformed turns, which are no calls, to other verifiers', async () => {
    expect(await score(executable(), [bad, final], '19')).toBe(1);
  });
});

describe('tool shaping', () => {
  test('takes off for repeated, unknown and malformed calls, up to the cap', async () => {
    const good = call('calculator', { expression: '12+7' });
    expect(await score(toolShaping(), [good, final], '19')).toBe(1);
    expect(await score(toolShaping(), [good, good, final], '19')).toBeCloseTo(0.9);
    expect(await score(toolShaping(), [call('search', {}), final], '19')).toBeCloseTo(0.8);
    expect(await score(toolShaping(), [bad, final], '19')).toBeCloseTo(0.8);
    expect(
      await score(
        toolShaping(),
        Array.from({ length: 20 }, () => bad),
        null,
      ),
    ).toBeCloseTo(0.5);
  });

  test('sees a repetition through the order of keys, and tells different calls apart', async () => {
    const one = call('calculator', { a: 1, b: { c: [1], d: 2 } });
    expect(
      await score(toolShaping(), [one, call('calculator', { b: { d: 2, c: [1] }, a: 1 })], null),
    ).toBeCloseTo(0.9);
    expect(await score(toolShaping(), [one, call('calculator', { a: 1, b: { c: [1], d: 3 } })], null)).toBe(
      1,
    );
  });

  test('another setting is another version, so that no old verdict is reused', () => {
    expect(toolShaping({ cap: 0.3 }).version).not.toBe(toolShaping().version);
  });
});

test('a call that is answered otherwise than before is no repetition', async () => {
  const turns = ['one', 'two', 'two'].map((text): Turn => ({
    start: 0,
    end: 0,
    text: '',
    action: call('next', {}),
    observation: { text },
  }));
  const paged = candidate([], null);
  paged.episode.turns = turns;
  paged.tools = ['next'];
  const { signal } = new AbortController();
  expect(await toolShaping().verify(paged, { signal })).toMatchObject({
    evidence: expect.stringMatching(/^1 dup/u) as string,
  });
});

test('an episode that the environment gave no reward scores 0, and abstains where that is asked for', async () => {
  const { signal } = new AbortController();
  const idle = candidate([final], '19');
  const rewarded = candidate([call('light', {})], null);
  rewarded.episode.turns[0]!.observation = { text: 'lit', reward: 1 };
  expect(await environmentReward().verify(rewarded, { signal })).toMatchObject({ kind: 'score', score: 1 });
  // Also where the least that it could have given counts as more than nothing.
  for (const options of [{}, { least: -1 }] as const) {
    expect(await environmentReward(options).verify(idle, { signal })).toMatchObject({
      kind: 'score',
      score: 0,
    });
  }
  const silent = environmentReward({ missing: 'abstain' });
  expect(await silent.verify(idle, { signal })).toMatchObject({ kind: 'abstain' });
});

test('each call of a turn with several is one that may be unknown or repeated', async () => {
  const twice = { name: 'calculator', arguments: { a: 1 } };
  const turn = (texts: string[]): Turn => ({
    start: 0,
    end: 0,
    text: '',
    action: { kind: 'calls', calls: [twice, twice, { name: 'search', arguments: {} }] },
    results: texts.map((text) => ({ text })),
  });
  const of = (turns: Turn[]): Candidate => {
    const some = candidate([], null);
    return { ...some, episode: { ...some.episode, turns } };
  };
  const verdict = (turns: Turn[]) =>
    toolShaping().verify(of(turns), { signal: new AbortController().signal });
  expect(await verdict([turn(['1', '1', 'error'])])).toMatchObject({
    evidence: '1 duplicate, 1 unknown, 0 malformed',
  });
  expect(await verdict([turn(['1', '2', 'error'])])).toMatchObject({
    evidence: '0 duplicate, 1 unknown, 0 malformed',
  });
});
