import { GradusError } from '../../../core/errors.ts';
import { ALONG } from '../../../runs/comparison/compare.ts';
import type { Along, ComparisonRequest } from '../../../runs/comparison/compare.ts';

export const NAMES: Record<Along, string> = {
  step: 'step of the run',
  tokens: 'tokens sampled to learn from',
  time: 'seconds of the steps',
};

export interface Asking {
  runs: string[];
  by: Along;
  figures: 'curated' | 'all';
  at: ComparisonRequest | null;
  tasks: 'all' | 'differing';
  /** Where the runs part is looked for where facts differ, or in every stored episode. */
  parting: 'facts' | 'episodes';
}

/** Throws GradusError('spec', …) for what a page has no link to. */
export function askingOf(query: Record<string, string[]>): Asking {
  const one = (name: string): string => query[name]?.[0] ?? '';
  const runs = [...(query['runs'] ?? []).flatMap((some) => some.split(',')), ...(query['run'] ?? [])]
    .map((run) => run.trim())
    .filter((run) => run !== '');
  const by = ALONG.find((along) => along === (one('by') || 'step'));
  if (!by) throw invalid(`by is one of ${ALONG.join(', ')}`);
  const [, stage, step] = /^([^/]+)\/(\d{1,9})$/.exec(one('at')) ?? [];
  if (one('at') !== '' && stage === undefined) throw invalid('at is STAGE/STEP');
  return {
    runs,
    by,
    figures: one('figures') === 'all' ? 'all' : 'curated',
    at: stage === undefined ? null : { stage, step: Number(step) },
    tasks: one('tasks') === 'all' ? 'all' : 'differing',
    parting: one('parting') === 'episodes' ? 'episodes' : 'facts',
  };
}

const invalid = (message: string): GradusError => new GradusError('spec', 'comparison', message);

export const placeText = ({ stage, step }: ComparisonRequest): string => `${stage}/${step}`;
