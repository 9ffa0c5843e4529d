import { describe, expect, test } from 'vitest';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import { isRewarded } from '../../../../core/episode/outcome.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import { succeeded, succeededToLearn } from '../../../../core/episode/reward.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';
import {
  agreedOn,
  labelFacts,
  labelled,
  labelOf,
  labelsOf,
  voteOf,
  whyNothingLearnt,
} from '../../../../core/training/labels.ts';
import { learnabilityOf, rewardProposals } from '../../../../core/training/proposals.ts';
import type { ProposalRewards, StepProposal } from '../../../../core/training/proposals.ts';
import { readRecipe } from '../../../../recipes/recipe.ts';

const reward: RewardSpec = {
  components: [
    { verifier: 'solved', role: 'outcome', weight: 2, gatedBy: null },
    { verifier: 'format', role: 'bonus', weight: 0.5, gatedBy: 'solved' },
  ],
  truncated: 'train',
} as unknown as RewardSpec;

const scored = (score: number, canonical?: string): Outcome => ({
  kind: 'scored',
  reward: score * 2.5,
  components: [
    {
      verifier: 'solved',
      version: '1',
      score,
      contribution: score * 2,
      ...(canonical !== undefined && { canonical }),
    },
    { verifier: 'format', version: '1', score: 1, contribution: score * 0.5 },
  ],
});

/** A sample by its answer, and whether the environment passes it; null: it was cut off. */
const sample = (answer: string | null, passes = false, canonical?: string): Episode =>
  ({
    sample: 0,
    task: 0,
    tokens: [1],
    mask: [1],
    samplerLogprobs: [-1],
    turns: [],
    status: answer === null ? { kind: 'truncated', limit: 'tokens' } : { kind: 'answered', answer },
    outcome:
      answer === null
        ? { ...scored(0), kind: 'truncated', limit: 'tokens' }
        : scored(passes ? 1 : 0, canonical),
  }) as Episode;
const group = (...episodes: Episode[]): RolloutGroup => ({
  id: 'group-0',
  weights: 'w',
  temperature: 1,
  tasks: [
    { ref: { environment: 'programs', split: 'train', level: 1, index: 0 }, prompt: '', promptTokens: [] },
  ],
  episodes: episodes.map((episode, i) => ({ ...episode, sample: i })),
});
const FILTER = { min: 0.3, max: 0.8 };
const by = (votes: string): (string | null)[] => Array.from(votes, (one) => (one === '-' ? null : one));

describe('the vote on a task', () => {
  // Votes, the label that they make, and p by hand; `-` is a sample without an answer.
  test.each([
    ['aaaaa', 'too-easy', 'a', 1, 0],
    ['aaaab', 'labelled', 'a', 4 / 5, 0.4],
    ['aaab', 'labelled', 'a', 3 / 4, 0.5],
    ['aab', 'labelled', 'a', 2 / 3, 2 / 3],
    ['aabc', 'labelled', 'a', 1 / 2, 1],
    ['aabcdefghi', 'too-hard', 'a', 1 / 5, 0.4],
    ['aaabcdefgh', 'labelled', 'a', 3 / 10, 0.6],
    // Two lead, or all are alone: no order of the samples makes a label.
    ['aabb', 'undecided', null, 1 / 2, 1],
    ['bbaa', 'undecided', null, 1 / 2, 1],
    ['abcd', 'undecided', null, 1 / 4, 0.5],
    // No answer is no vote: it is neither for nor against.
    ['aab-', 'labelled', 'a', 2 / 3, 2 / 3],
    ['aaa---', 'too-easy', 'a', 1, 0],
    // Fewer than half have one.
    ['aab----', 'too-few', null, 0, 0],
    // Fewer than three have one: what two say is a coin toss, however few samples there are.
    ['ab-', 'too-few', null, 0, 0],
    ['ab--', 'too-few', null, 0, 0],
    ['aa--', 'too-few', null, 0, 0],
    ['a--', 'too-few', null, 0, 0],
    ['----', 'too-few', null, 0, 0],
  ])('of %s', (votes, kind, label, p, worth) => {
    const said = labelOf(by(votes), FILTER);
    expect(said).toMatchObject({ kind, ...(label !== null && { label }) });
    expect('label' in said).toBe(label !== null);
    const agreed = agreedOn(said);
    expect(agreed.successes / agreed.trials).toBeCloseTo(p, 12);
    expect(learnabilityOf(agreed, 'r-zero')).toBeCloseTo(worth, 12);
  });

  test('is within the filter at both of its ends, and without a filter every label counts', () => {
    const half = { min: 0.5, max: 0.5 };
    expect(labelOf(by('aabc'), half).kind).toBe('labelled');
    expect(labelOf(by('aab'), half).kind).toBe('too-easy');
    expect(labelOf(by('aabcd'), half).kind).toBe('too-hard');
    expect(labelOf(by('aaaa'), undefined).kind).toBe('labelled');
  });

  test('is by what an answer comes down to, else by its letters; an empty answer is none', () => {
    expect(voteOf(sample(' 1  7 '))).toBe('1 7');
    expect(voteOf(sample('017', true, '17'))).toBe('17');
    for (const none of [sample(''), sample(' \n'), sample('\u200b\u2060'), sample(null)])
      expect(voteOf(none)).toBeNull();
    // Its verifier cannot read it.
    expect(voteOf(sample('I do not know', false, ''))).toBeNull();
  });

  test('is nothing where infrastructure ended every sample, so that nobody is punished for it', () => {
    const failed = {
      ...sample('1'),
      outcome: { kind: 'failed', boundary: 'infra', reason: 'away' },
    } as Episode;
    const [said] = labelsOf(group(failed, failed), FILTER);
    expect(said).toMatchObject({ kind: 'too-few', samples: 0 });
    const made: StepProposal = { kind: 'made', task: 0, first: true, like: 'a' };
    expect(rewardProposals([[made]], [agreedOn(said!)], HOW)).toEqual([[null]]);
    // One that infrastructure ended is none of those that could have voted.
    expect(labelsOf(group(sample('1'), sample('1'), failed, failed, failed), FILTER)[0]!.samples).toBe(2);
    // Nor is it the proposal's fault, or luck, that two were left.
    for (const left of [['1', '2'], ['1', '1'], ['1']]) {
      const [few] = labelsOf(group(...left.map((one) => sample(one)), failed, failed, failed), FILTER);
      expect(rewardProposals([[made]], [agreedOn(few!)], HOW)).toEqual([[null]]);
    }
  });
});

const HOW = {
  learnability: 'r-zero',
  repetitionPenalty: 1,
  invalidReward: -0.5,
  malformedReward: -1,
} as const;

describe('a proposal', () => {
  test('earns 1 − 2·|p − ½| less the share of those that resemble it, by hand', () => {
    const made = (task: number, like: string): StepProposal => ({ kind: 'made', task, first: true, like });
    const votes = ['aabc', 'aaab', 'aaaa', 'a---'].map((one) => agreedOn(labelOf(by(one), FILTER)));
    const step = [made(0, 'x'), made(1, 'x'), made(2, 'x'), made(3, 'y')];
    // 1 − 2/4, 0.5 − 2/4, 0 − 2/4, and nothing for a task that nobody can answer.
    expect(rewardProposals([step], votes, HOW)).toEqual([[0.5, 0, -0.5, 0]]);
  });

  test('of the recipe r-zero earns what the paper says where all samples vote, by hand, and never less than 0', async () => {
    const { runs } = await readRecipe('r-zero');
    const { stages } = runs.find(({ name }) => name === 'treatment')!.spec as unknown as {
      stages: { selfPlay: Partial<ProposalRewards> & { labels: string } }[];
    };
    const challengers = stages.filter(({ selfPlay }) => selfPlay.learnability === 'r-zero');
    expect(challengers).toHaveLength(3);
    for (const { selfPlay } of challengers) {
      const made = (task: number, like: string): StepProposal => ({ kind: 'made', task, first: true, like });
      const votes = ['aaaaabbbcc', 'aaaaaaabbc', 'aaaaaaaaaa', 'aaaabbbccd'];
      const step = [made(0, 'x'), made(1, 'x'), made(2, 'x'), made(3, 'y')];
      const solved = votes.map((one) => agreedOn(labelOf(by(one), FILTER)));
      const [rewards] = rewardProposals([step], solved, { ...HOW, ...selfPlay });
      // p is 5/10, 7/10, 10/10 and 4/10; two of the three others of the step resemble each of the first three.
      for (const [i, reward] of [1 - 2 / 4, 0.6 - 2 / 4, 0, 0.8].entries())
        expect(rewards![i]).toBeCloseTo(reward, 12);
    }
  });

  test('is worth what the votes disagree about: samples without one are no second opinion', () => {
    // Of all ten samples the majority would be one half, which pays the most, though no two answers differ.
    expect(learnabilityOf(agreedOn(labelOf(by('aaaaa-----'), FILTER)), 'r-zero')).toBe(0);
    // Of all ten it would be 3/10.
    expect(learnabilityOf(agreedOn(labelOf(by('aaabbb----'), FILTER)), 'r-zero')).toBe(1);
  });

  test('of a task that few samples can answer is worth nothing, however these few disagree', () => {
    for (const votes of ['ab------', 'aab-----', 'a-------', '--------'])
      for (const how of ['r-zero', 'absolute-zero'] as const)
        expect(learnabilityOf(agreedOn(labelOf(by(votes), FILTER)), how)).toBe(0);
  });
});

describe('what the solver learns from', () => {
  const outcomesOf = (...episodes: Episode[]): Outcome[] => {
    const one = group(...episodes);
    return labelled(reward, one, labelsOf(one, FILTER)).episodes.map(({ outcome }) => outcome!);
  };

  test('is agreement with the majority, and what the environment says is kept beside it', () => {
    // The majority is wrong, and one sample is right.
    const outcomes = outcomesOf(sample('3'), sample('3'), sample('4', true), sample(null));
    expect(outcomes.map((one) => isRewarded(one) && one.reward)).toEqual([2.5, 2.5, 0, 0]);
    expect(outcomes.map((one) => succeededToLearn(reward.components, one))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(outcomes.map((one) => succeeded(reward.components, one))).toEqual([false, false, true, false]);
    expect(outcomes[3]).toMatchObject({ kind: 'truncated', limit: 'tokens' });
    expect(isRewarded(outcomes[2]!) && outcomes[2].components[0]).toMatchObject({
      score: 1,
      agreed: false,
      contribution: 0,
      evidence: '2 of 3 votes are for another answer',
    });
  });

  test.each([
    ['all agree', ['5', '5', '5', '5'], /filtered as too easy: the label has 4 of 4 votes/],
    [
      'two answers lead',
      ['5', '5', '6', '6'],
      /no answer leads, the most frequent ones have 2 of 4 votes each/,
    ],
    ['nobody answers', ['', ' ', '', ''], /0 of 4 samples have an answer/],
    ['few answer', ['5', null, null, null], /1 of 4 samples have an answer/],
  ])('is nothing where %s', (_, answers, why) => {
    for (const outcome of outcomesOf(...answers.map((one) => sample(one, true))))
      expect(outcome).toMatchObject({ kind: 'abstained', reason: expect.stringMatching(why) as string });
  });

  test('is one answer to everything where most samples give it, until nearly all do: that is told, and not paid', () => {
    const habit = (times: number) =>
      group(...Array.from({ length: 10 }, (_, i) => sample(i < times ? '0' : `${i}`, i === 9)));
    const [some, nearly] = [habit(6), habit(9)].map((one) => labelsOf(one, FILTER)[0]!.kind);
    expect([some, nearly]).toEqual(['labelled', 'too-easy']);
    const all = [habit(6), habit(9)].map((one) => ({ group: one, labels: labelsOf(one, FILTER) }));
    expect(labelFacts(reward, all)).toMatchObject({ right: 0, checked: 2, learnt: 1 });
  });

  test('has another name than what was rolled out, and all of its samples', () => {
    const one = group(sample('1'), sample('1'), sample('2'));
    const judged = labelled(reward, one, labelsOf(one, FILTER));
    expect(judged.id).toBe('group-0.judged');
    expect(judged.episodes.map(({ sample: at }) => at)).toEqual([0, 1, 2]);
    expect(one.episodes[0]!.outcome).toEqual(scored(0));
  });
});

describe('the facts of labels', () => {
  const groups = (...all: RolloutGroup[]) =>
    all.map((one) => ({ group: one, labels: labelsOf(one, FILTER) }));

  test('say how many labels the environment passes, also of those that are filtered', () => {
    const facts = labelFacts(
      reward,
      groups(
        group(sample('1', true), sample('1', true), sample('2')),
        group(sample('1'), sample('1'), sample('2', true)),
        group(sample('1'), sample('1'), sample('1')),
        group(sample('1', true), sample('1', true), sample('2'), sample('2')),
        group(sample(null), sample(null)),
      ),
    );
    expect(facts).toEqual({
      tasks: 5,
      tooFew: 1,
      undecided: 1,
      tooHard: 0,
      tooEasy: 1,
      learnt: 2,
      shareSum: 2 / 3 + 2 / 3 + 1 + 1 / 2,
      right: 1,
      checked: 3,
      rightLearnt: 1,
      checkedLearnt: 2,
    });
    expect(whyNothingLearnt(facts)).toBeNull();
  });

  test('say of the labels that are learnt from alone how many are right: the filter leaves out what is easy', () => {
    const easy = group(sample('1', true), sample('1', true), sample('1', true));
    const wrong = group(sample('1'), sample('1'), sample('2', true));
    const facts = labelFacts(reward, groups(easy, wrong));
    expect(facts).toMatchObject({ right: 1, checked: 2, rightLearnt: 0, checkedLearnt: 1 });
  });

  test('take a label for right where the verifier passes one of the forms that come down to it, in any order', () => {
    const unreduced = sample('6/8', false, '3/4');
    const reduced = sample('3/4', true, '3/4');
    for (const votes of [
      [unreduced, reduced, sample('1')],
      [reduced, unreduced, sample('1')],
    ])
      expect(labelFacts(reward, groups(group(...votes)))).toMatchObject({ right: 1, checked: 1 });
    expect(labelFacts(reward, groups(group(unreduced, unreduced, sample('1'))))).toMatchObject({
      right: 0,
      checked: 1,
    });
  });

  test('say why nothing was learnt from', () => {
    const facts = labelFacts(
      reward,
      groups(group(sample('1'), sample('1'), sample('1')), group(sample(''), sample(null))),
    );
    expect(whyNothingLearnt(facts)).toBe(
      "no task was given to the solver's training: of 2 there were 1 with too few answers, 1 whose majority is above it",
    );
    expect(whyNothingLearnt(labelFacts(reward, []))).toBeNull();
  });
});
