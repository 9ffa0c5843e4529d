import type { Objective } from '../../../core/algorithms/objective.ts';
import { LORA_MODULES } from '../../../core/names.ts';

/** What is trained on a server of Tinker's API, in tests and beside a real one. */
export const lora = { rank: 4, alpha: 32, rsLora: false, targetModules: [...LORA_MODULES] };
const mean = { temperature: 1, topK: 0, aggregation: 'sequence', maxCompletionTokens: 40 } as const;
export const OBJECTIVES: Record<string, Objective> = {
  supervised: { kind: 'supervised' },
  clipped: { ...mean, kind: 'clipped', clipRatioLow: 0.2, clipRatioHigh: 0.28, beta: 0, importanceCap: 2 },
  cispo: { ...mean, aggregation: 'token', kind: 'cispo', clipRatioHigh: 0.2 },
  reinforce: { ...mean, aggregation: 'dr-grpo', kind: 'reinforce', importanceCap: 2 },
};
