/** What can go wrong in training, by the names that the field has for it. Each is one file of this folder. */
export const DIAGNOSES = [
  'missing-mask',
  'no-contrast',
  'empty-batch',
  'constant-judge',
  'echo-trap',
  'entropy-collapse',
  'kl-blow-up',
  'low-ess',
  'stale-samples',
  'reward-hacking',
  'length-explosion',
  'truncation',
  'tool-hallucination',
  'tool-errors',
  'loops',
] as const;
export type DiagnosisName = (typeof DIAGNOSES)[number];

/** One figure that speaks for a diagnosis, and the limit that it has passed. */
export interface Evidence {
  /** The figure, with its unit. */
  what: string;
  now: number;
  /** What the stage began with; null where only the figure itself counts. */
  before: number | null;
  limit: number;
}

/** What was found at a step. */
export interface Alarm {
  name: DiagnosisName;
  /** Of the stage, from 1. */
  stageStep: number;
  evidence: Evidence[];
  /** What a person can do about it. */
  remedy: string;
}

const figure = (x: number): string => String(Number(x.toPrecision(3)));

/** One figure in words: `entropy, nats a token: 0.31 (at first 1.3, limit 0.65)`. */
function evidenceText({ what, now, before, limit }: Evidence): string {
  const first = before === null ? '' : `at first ${figure(before)}, `;
  return `${what}: ${figure(now)} (${first}limit ${figure(limit)})`;
}

/** The alarm in one line, for a terminal or a question. */
export const alarmText = ({ name, evidence, remedy }: Alarm): string =>
  `${name}: ${evidence.map(evidenceText).join('; ')}. ${remedy}`;
