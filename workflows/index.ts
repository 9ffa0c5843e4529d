export { curriculum } from './curriculum.ts';
export { evaluation } from './evaluation.ts';
export { ladder } from './ladder.ts';
export { review } from './review.ts';
export { rolloutGroup } from './rollout-group.ts';
export { stage } from './stage.ts';
export { verdict } from './verdict.ts';
export { warmStart } from './warm-start.ts';
