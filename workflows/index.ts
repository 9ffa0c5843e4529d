export { curriculum } from './curriculum.ts';
export { evaluation } from './evaluation.ts';
export { rolloutGroup } from './rollout-group.ts';
export { stage } from './stage.ts';
export { warmStart } from './warm-start.ts';
