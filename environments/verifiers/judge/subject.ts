import { canonicalJson } from '../../../core/json/canonical-json.ts';
import type { Json } from '../../../core/json/json.ts';
import type { Candidate } from '../../contract/environment.ts';
import type { Judge } from './options.ts';

/** What a verdict rests on: what the rule said, or what the judge is to see, or that it is too long to be seen. */
export type JudgeSubject =
  | { kind: 'decided'; score: number; evidence: string }
  | { kind: 'too-long'; bytes: number }
  | { kind: 'shown'; attempt: { task: string; turns?: Json; answer: string } };

/** A subject goes through Temporal, whose payloads stay below 64 KB, bytes of JSON. */
const LONGEST = 48_000;

/** Null where the policy gave no answer and no rule has decided. Token ids and times are left out: they differ without meaning. */
export function judgeSubject(
  judge: Pick<Judge, 'rule' | 'shows'>,
  candidate: Candidate,
): JudgeSubject | null {
  const decided = judge.rule?.(candidate) ?? null;
  if (decided !== null)
    return { kind: 'decided', score: decided.score, evidence: decided.evidence ?? 'by rule' };
  if (candidate.answer === null) return null;
  const attempt = {
    task: candidate.task.prompt,
    ...(judge.shows === 'turns' ? { turns: turnsOf(candidate) } : {}),
    answer: candidate.answer,
  };
  const bytes = Buffer.byteLength(canonicalJson(attempt));
  return bytes > LONGEST ? { kind: 'too-long', bytes } : { kind: 'shown', attempt };
}

const turnsOf = ({ episode }: Candidate): Json =>
  episode.turns.map(({ text, action, observation }) => ({
    wrote: text,
    ...(action.kind === 'call' ? { called: action.call.name, with: action.call.arguments } : {}),
    ...(action.kind === 'calls'
      ? { calls: action.calls.map((call) => ({ called: call.name, with: call.arguments })) }
      : {}),
    ...(action.kind === 'malformed' ? { malformed: action.reason } : {}),
    ...(observation ? { result: observation.text } : {}),
  }));
