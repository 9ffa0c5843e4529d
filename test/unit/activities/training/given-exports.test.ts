import { expect, test } from 'vitest';
import { readAfter } from '../../../../activities/rollout/advance-episode.ts';
import { givenExample } from '../../../../activities/training/given-examples.ts';
import { joinedObservation } from '../../../../core/episode/call-by-call.ts';
import type { Episode, GroupTask, RolloutGroup } from '../../../../core/episode/episode.ts';
import { readGivenLine } from '../../../../core/schema/given-line.ts';
import type { Dialect, WrittenTurn } from '../../../../engine/dialect/contract.ts';
import type { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { atifOf } from '../../../../runs/exports/atif.ts';
import { messagesLine } from '../../../../runs/exports/messages.ts';
import type { FoundEpisode } from '../../../../runs/find/found-episodes.ts';
import { madeSpec } from '../../../support/made-run.ts';
import { DIALECTS } from '../../engine/dialect/every-dialect.ts';

// What is exported can be given back: the same tokens, of which the same ones count.

const call = (expression: string) => ({ call: { name: 'calculator', arguments: { expression } } });
const EPISODES: [turn: WrittenTurn, result?: string | string[]][][] = [
  [[{ answer: 'No, 4 {"a"} é🦀' }]],
  [[call('1 +\n"2"'), 'error: it is\n3'], [call('3'), ''], [{ answer: '3' }]],
];
const THOUGHTFUL: typeof EPISODES = [
  [[{ think: 'First\n\nI add.', ...call('1 + 2') }, '3'], [{ think: 'So.', answer: '3' }]],
];

const two = [call('1 +\n"2"').call, { name: 'now', arguments: {} }];
const SEVERAL: typeof EPISODES = [
  [[{ calls: two }, ['3', 'error: no tool now; tools: calculator']], [call('3'), ''], [{ answer: '3' }]],
  [[{ calls: [...two, two[0]!] }, ['3', '', '<b>']], [{ answer: '3' }]],
];
const SEVERAL_THOUGHTFUL: typeof EPISODES = [
  [[{ think: 'First\n\nboth.', calls: two }, ['3', 'noon']], [{ think: 'So.', answer: '3' }]],
];
/** What they think comes back, beside several calls too. */
const THINKS = /^(?:hermes|deepseek)/u;
const ONE_CALL = ['gradus', 'search-r1', 'retool', 'own'];

/** As it would lie in the store, had a policy sampled what the dialect writes. */
function stored([dialect, tokenizer]: [Dialect, Tokenizer], written: (typeof EPISODES)[number]) {
  const prompt = 'What is 1 + 2?\n<b>';
  const promptTokens = dialect.promptTokens([{ role: 'user', content: prompt }]);
  const episode: Episode = {
    task: 0,
    sample: 0,
    tokens: [],
    mask: [],
    samplerLogprobs: [],
    turns: [],
    status: { kind: 'running' },
    outcome: { kind: 'scored', reward: 1, components: [] },
  };
  const append = (tokens: readonly number[], mask: 0 | 1) => {
    episode.tokens.push(...tokens);
    episode.mask.push(...tokens.map(() => mask));
    episode.samplerLogprobs.push(...tokens.map(() => -mask));
  };
  for (const [turn, result] of written) {
    const start = episode.tokens.length;
    append(dialect.turnTokens(turn), 1);
    const text = tokenizer.decode(episode.tokens.slice(start));
    const action = dialect.parse(text, turn.calls?.length);
    const results = Array.isArray(result) ? result.map((one) => ({ text: one })) : undefined;
    const observation = typeof result === 'string' ? { text: result } : results && joinedObservation(results);
    episode.turns.push({
      start,
      end: episode.tokens.length,
      text,
      action,
      ...(observation && { observation }),
      ...(results && { results }),
    });
    if (observation) append(readAfter(dialect, episode.turns.at(-1)!), 0);
    else if (action.kind === 'answer') episode.status = { kind: 'answered', answer: action.answer };
  }
  const ref = { environment: 'calculator', split: 'train' as const, level: 1, index: 0 };
  const task: GroupTask = { ref, prompt, promptTokens };
  const group: RolloutGroup = {
    id: 'group-0',
    weights: 'w',
    temperature: 1,
    tasks: [task],
    episodes: [episode],
  };
  const place = { run: 'made', stage: 'rl', step: 1, group: 0, episode: 0 };
  const found: FoundEpisode = { place, group, task, episode };
  return {
    found,
    tokens: [...promptTokens, ...episode.tokens],
    mask: [...promptTokens.map(() => 0), ...episode.mask],
  };
}

const { reward } = madeSpec('made');
const EXPORTS: Record<string, (found: FoundEpisode) => string> = {
  messages: (found) => messagesLine(found, reward),
  ATIF: (found) => JSON.stringify(atifOf(found, reward)),
};

test.each(Object.keys(DIALECTS).flatMap((name) => Object.keys(EXPORTS).map((format) => [name, format])))(
  'an episode in the dialect %s comes back from %s as it was',
  (name, format) => {
    const spoken = DIALECTS[name]!;
    const all = [
      ...EPISODES,
      ...(name === 'llama3' ? [] : THOUGHTFUL),
      ...(ONE_CALL.includes(name) ? [] : SEVERAL),
      ...(THINKS.test(name) ? SEVERAL_THOUGHTFUL : []),
    ];
    for (const written of all) {
      const { found, tokens, mask } = stored(spoken, written);
      const line = readGivenLine(EXPORTS[format]!(found));
      const [given] = givenExample(
        { where: 'found.jsonl, line 1', line },
        () => spoken[0],
        Infinity,
        undefined,
      );
      expect(spoken[1].decode(given!.tokens)).toBe(spoken[1].decode(tokens));
      expect(given!.tokens).toEqual(tokens);
      expect(given!.mask).toEqual(mask);
    }
  },
);
