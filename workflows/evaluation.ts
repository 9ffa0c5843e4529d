import { evaluate } from '../core/evaluation.ts';
import type { EvaluationRequest, EvaluationResult } from '../core/requests.ts';
import { rolloutChildren } from './ports.ts';

/** Measures a checkpoint on held-out tasks. */
export function evaluation(request: EvaluationRequest): Promise<EvaluationResult> {
  return evaluate({ rollout: rolloutChildren }, request);
}
