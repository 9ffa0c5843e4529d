import type { Action, Turn } from '../../../../core/episode/episode.ts';
import type { Json } from '../../../../core/json/json.ts';
import type {
  Candidate,
  FastVerifier,
  Task,
  Verdict,
} from '../../../../environments/contract/environment.ts';

export const call = (name: string, args: Json): Action => ({ kind: 'call', call: { name, arguments: args } });
export const bad: Action = { kind: 'malformed', reason: 'text outside tags' };
export const says = (answer: string): Action => ({ kind: 'answer', answer });

/** An episode of these actions on a task; it answered if its last action does. */
export function candidateOf(task: Partial<Task>, actions: readonly Action[]): Candidate {
  const last = actions.at(-1);
  const answer = last?.kind === 'answer' ? last.answer : null;
  return {
    task: { ref: { environment: 'e', split: 'train', level: 1, index: 0 }, prompt: 'q', ...task },
    episode: {
      turns: actions.map((action): Turn => ({ start: 0, end: 0, text: '', action })),
      status: answer === null ? { kind: 'truncated', limit: 'turns' } : { kind: 'answered', answer },
    },
    answer,
    tools: ['f', 'g'],
  };
}

type Score = Extract<Verdict, { kind: 'score' }>;

/** The verdict, which must be a score. */
export async function judged(verifier: FastVerifier, candidate: Candidate): Promise<Score> {
  const verdict = await verifier.verify(candidate, { signal: new AbortController().signal });
  if (verdict.kind !== 'score') throw new Error(verdict.reason);
  return verdict;
}
