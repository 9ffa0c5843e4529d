import type { Speaking } from '../../activities/rollout/policies.ts';
import type { PolicyPool } from '../../activities/rollout/policy-pool.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { smallConfig } from './store/fixtures.ts';
import { tokenizer } from './fixture-tokenizer.ts';
import { ScriptedPolicy } from './scripted-policy.ts';

/** Decoders that say just these turns, once in each activity that takes them. */
export function poolSaying(turns: string | readonly string[], { maxPositions = 512 } = {}): PolicyPool {
  const lease = () => ({
    policy: new ScriptedPolicy([turns].flat().map((turn) => ({ tokens: tokenizer.encode(turn) }))),
    tokenizer,
    config: { ...smallConfig, maxPositions },
    dialectFor: ({ tools }: Speaking) =>
      openDialect(
        tokenizer,
        {},
        tools.map(({ described }) => described),
      ),
    release: () => undefined,
  });
  return { lease: () => Promise.resolve(lease()) } as unknown as PolicyPool;
}
