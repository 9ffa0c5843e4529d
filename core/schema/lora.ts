import { z } from 'zod';
import { LORA_MODULES } from '../names.ts';
import { positive } from '../fields.ts';

export const loraSchema = z
  .strictObject({
    rank: z.int().min(1).max(1024).default(8).describe('Rank of the low-rank matrices.'),
    alpha: positive(65_536, 'lower it, or raise the rank')
      .default(16)
      .describe('The adapter’s product is scaled by alpha / rank.'),
    targetModules: z
      .array(z.enum(LORA_MODULES))
      .nonempty()
      .default([...LORA_MODULES])
      .describe('Linear layers that get an adapter.'),
    rsLora: z.boolean().default(false).describe('alpha / √rank instead (Kalajdzievski 2023).'),
  })
  .optional()
  .describe('Train a LoRA adapter (Hu et al. 2021) beside weights that stay. Absent: train all weights.');

/** The weights stay, and low-rank matrices beside some of them are learnt. */
export type LoraSpec = Omit<NonNullable<z.output<typeof loraSchema>>, 'targetModules'> & {
  /** Linear layers by the ends of their names, e.g. `q_proj`. An adapter that is read may name other ones than a spec. */
  targetModules: string[];
};
