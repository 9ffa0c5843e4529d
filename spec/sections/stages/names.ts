import { HELD_OUT } from '../../../core/names.ts';
import type { Refuse } from '../../check.ts';

/** Names that every run uses for its own phases, workflows and objects. */
const RESERVED = [
  'spec',
  'initialize',
  'warm-start',
  'before',
  'after',
  'report',
  'done',
  'evaluation',
  'ladder',
  'reverify',
  'sweep',
];

/** Names become folders, which some file systems do not tell apart by case. */
export function checkStageNames(stages: readonly { name: string }[], refuse: Refuse): void {
  const lower = stages.map(({ name }) => name.toLowerCase());
  stages.forEach(({ name }, s) => {
    const at = ['stages', s, 'name'];
    if (lower.indexOf(lower[s]!) !== s) {
      refuse(at, `"${name}" is the name of an earlier stage; names must differ, and not by case alone`);
    }
    if (RESERVED.includes(lower[s]!) || lower[s]!.endsWith(HELD_OUT)) {
      refuse(at, `"${name}" is what every run calls a part of its own; choose another`);
    }
  });
}
