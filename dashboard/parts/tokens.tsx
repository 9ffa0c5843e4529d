import type { FC } from 'hono/jsx';
import { decimals } from '../../core/decimals.ts';
import { Text } from './text.tsx';

/** A token as a page shows it. */
export interface ShownToken {
  text: string;
  /** Nats; null where the policy did not sample it. */
  logprob: number | null;
  advantage: number | null;
  /** Nothing is learnt from it. */
  masked: boolean;
}

export type Colouring = 'logprob' | 'advantage';

/** Probabilities below which a token is marked more strongly. */
const LIMITS = [0.9, 0.5, 0.1, 0.01];

const classOf = ({ logprob, advantage, masked }: ShownToken, by: Colouring): string => {
  const classes = ['t'];
  if (by === 'logprob' && logprob !== null) {
    const p = Math.exp(logprob);
    classes.push(`p${LIMITS.filter((limit) => p < limit).length}`);
  }
  if (by === 'advantage' && advantage !== null && advantage !== 0)
    classes.push(advantage > 0 ? 'up' : 'down');
  if (masked) classes.push('masked');
  return classes.join(' ');
};

function titleOf({ logprob, advantage, masked }: ShownToken): string {
  const lines = [
    logprob === null ? null : `p ${Math.exp(logprob).toPrecision(3)}, log-prob ${decimals(logprob, 4)}`,
    advantage === null ? null : `advantage ${advantage.toPrecision(3)}`,
    masked ? 'not trained on' : null,
  ];
  return lines.filter((one) => one !== null).join('; ');
}

/** Tokens one after the other, each underlined by how likely it was or by its advantage; hatched where masked. */
export const Tokens: FC<{ tokens: readonly ShownToken[]; by: Colouring }> = ({ tokens, by }) => (
  <span class="tokens mono">
    {tokens.map((token) => (
      <span class={classOf(token, by)} title={titleOf(token)}>
        <Text value={token.text} />
      </span>
    ))}
  </span>
);

/** What the lines under tokens mean. */
export const TokenLegend: FC<{ by: Colouring }> = ({ by }) => (
  <p class="note key">
    {by === 'logprob' ? (
      <span class="tokens">
        Underlined by the probability with which it was sampled: <span class="t p0">0.9 or more</span>{' '}
        <span class="t p1">0.5 or more</span> <span class="t p2">0.1 or more</span>{' '}
        <span class="t p3">0.01 or more</span> <span class="t p4">less</span>.
      </span>
    ) : (
      <span class="tokens">
        Underlined by the advantage that the learner was given: <span class="t up">positive</span>{' '}
        <span class="t down">negative</span>.
      </span>
    )}{' '}
    <span class="masked">Hatched</span>: it is not trained on. A token's title has its numbers.
  </p>
);
