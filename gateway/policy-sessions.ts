import type { Policy } from '../engine/policy.ts';

/** Caches of an episode that are kept at a time; an agent with more branches is fed again where it goes on. */
const MOST = 4;

/** Which session of the policy has read a path: a turn goes on in that of its parent, unless a sibling has taken it. */
export class PolicySessions {
  private readonly policy: Policy;
  private readonly name: string;
  private readonly at = new Map<string, string>();
  private opened = 0;

  constructor(policy: Policy, name: string) {
    this.policy = policy;
    this.name = name;
  }

  after(turn: string | null): string {
    const kept = turn === null ? undefined : this.at.get(turn);
    if (turn === null || kept === undefined) return `agent/${this.name}/${this.opened++}`;
    this.at.delete(turn);
    return kept;
  }

  keep(turn: string, session: string): void {
    this.at.set(turn, session);
    if (this.at.size <= MOST) return;
    const [oldest, its] = [...this.at][0]!;
    this.at.delete(oldest);
    this.policy.release(its);
  }

  close(): void {
    for (const session of this.at.values()) this.policy.release(session);
    this.at.clear();
  }
}
