import type { FastVerifier } from '../contract/environment.ts';

/**
 * The part of the turns that were well-formed; an episode that ends without an answer counts one bad turn more, unless its
 * environment ended it. A turn parses by the policy's dialect: unlike the format reward of DeepSeek-R1 it asks for no think
 * tags.
 */
export function formatVerifier(): FastVerifier {
  return {
    name: 'format',
    version: '2',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ episode, answer }) => {
      const malformed = episode.turns.filter(({ action }) => action.kind === 'malformed').length;
      const unanswered = answer === null && episode.status.kind !== 'ended';
      const turns = episode.turns.length + (unanswered ? 1 : 0);
      const good = episode.turns.length - malformed;
      return {
        kind: 'score',
        score: turns === 0 ? 0 : good / turns,
        evidence: `${malformed} malformed${unanswered ? ', no answer' : ''}`,
      };
    },
  };
}
