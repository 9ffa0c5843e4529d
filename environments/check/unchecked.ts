import { counted } from '../../core/counted.ts';
import type { Seen } from './look.ts';

/** What a check of an environment leaves open by its nature, in words. */
export function uncheckedOf({ plays, resume, demonstrates }: Seen): string[] {
  const unchecked: string[] = [];
  if (!demonstrates) {
    unchecked.push('tools, sessions and verifiers: it has no demonstrate(), and so no episode was played');
  }
  const unjudged = plays.filter(({ play }) => 'unjudged' in play && play.unjudged).length;
  if (unjudged > 0) {
    unchecked.push(
      `verdicts of ${counted(unjudged, 'episode')}, in which once tools were not called (--perform-once calls them)`,
    );
  }
  if (demonstrates && (resume === 'pin' || resume === 'reattach')) {
    unchecked.push(`whether sessions share state: with ${resume} no episode is played a second time`);
  }
  return unchecked;
}
