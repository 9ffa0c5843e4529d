import type { TaskRef } from '../../core/refs.ts';
import type { GroupRequest } from '../../core/requests/rollout.ts';

/** The first group of a run's first step, judged by `exact-match`. */
export const groupRequest = (
  run: string,
  tasks: TaskRef[],
  over: Partial<GroupRequest> = {},
): GroupRequest => ({
  run,
  seed: 1,
  stage: 'rl',
  step: 1,
  group: 0,
  firstTask: 0,
  retries: 0,
  tasks,
  samples: 1,
  checkpoint: { manifest: { key: 'c', sha256: 'c', bytes: 1 }, weights: 'w', step: 0 },
  sampling: { temperature: 1, topK: 0, topP: 1, maxTurns: 8, maxCompletionTokens: 100 },
  reward: {
    components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
    truncated: 'train',
  },
  ...over,
});
