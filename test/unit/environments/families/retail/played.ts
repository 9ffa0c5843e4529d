import type { Json } from '../../../../../core/json/json.ts';
import type { ToolCall, Turn } from '../../../../../core/episode/episode.ts';
import { ToolRefusal, type Candidate, type Task } from '../../../../../environments/contract/environment.ts';
import { actAtDesk, openDesk } from '../../../../../environments/families/retail/desk.ts';
import { goalOf } from '../../../../../environments/families/retail/goal.ts';
import { retailVerifier } from '../../../../../environments/families/retail/verifier.ts';

export const call = (name: string, args: Record<string, string> = {}): ToolCall => ({
  name,
  arguments: args,
});
export const say = (text: string): ToolCall => call('say', { text });

/** An episode of these calls, played to its end, and the answer where the environment has not ended it before. */
export function played(
  task: Task,
  calls: readonly ToolCall[],
  answer: string | null,
): Candidate & { told: string[] } {
  const goal = goalOf(task);
  let desk = openDesk(goal);
  const turns: Turn[] = [];
  const lines: string[] = [];
  let over = false;
  for (const one of calls) {
    if (over) break;
    let text: string;
    try {
      const { state, did } = actAtDesk(desk, goal, one);
      desk = state;
      text = did.text;
      over = did.done ?? false;
    } catch (error) {
      if (!(error instanceof ToolRefusal)) throw error;
      text = `error: ${error.message}`;
    }
    lines.push(text);
    turns.push({ start: 0, end: 0, text: '', action: { kind: 'call', call: one }, observation: { text } });
  }
  const message = over ? null : answer;
  return {
    task,
    episode: {
      turns,
      status:
        message === null ? { kind: 'truncated', limit: 'turns' } : { kind: 'answered', answer: message },
      session: { state: desk as unknown as Json },
    },
    answer: message,
    tools: [],
    told: lines,
  };
}

const verifier = retailVerifier();

export async function scoreOf(candidate: Candidate): Promise<number> {
  const verdict = await verifier.verify(candidate, { signal: new AbortController().signal });
  if (verdict.kind !== 'score') throw new Error(verdict.reason);
  return verdict.score;
}
