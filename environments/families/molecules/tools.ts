import { z } from 'zod';
import { defineTool, ToolRefusal } from '../../contract/environment.ts';
import type { Tool } from '../../contract/environment.ts';
import { calculateOnce } from './calculate-once.ts';
import { checkMolecule } from './check-molecule.ts';
import { ELEMENTS } from './enumerate.ts';
import { descriptorsOf } from './rdkit.ts';
import type { MoleculeFacts } from './rdkit.ts';
import { inWords, onScale, XTB_SCALE } from './verifiers.ts';

const argumentsSchema = z.strictObject({ smiles: z.string().describe('A molecule as SMILES, like CCO') });
/** A tool knows no task: its limits are those of the tiers. */
const LIMITS = { heavyAtoms: 60, elements: [...ELEMENTS, 'Si', 'P', 'Br', 'I'] };

function moleculeOf(smiles: string): MoleculeFacts {
  const { score, reason, molecule } = checkMolecule(smiles, LIMITS);
  if (score < 1 || molecule === null) throw new ToolRefusal(reason);
  return molecule;
}

const validate = defineTool({
  name: 'validate',
  description: 'Whether a SMILES is a molecule, in its canonical form.',
  arguments: argumentsSchema,
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0.001, usd: 0 },
  run: ({ smiles }) => {
    const { smiles: canonical, heavyAtoms, elements } = moleculeOf(smiles);
    return `${canonical}, ${heavyAtoms} atoms of ${elements.join(' ')}`;
  },
});

const describe = defineTool({
  name: 'describe',
  description: 'Mass, polarity, lipophilicity, rings and hydrogen bonds of a molecule.',
  arguments: argumentsSchema,
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0.001, usd: 0 },
  run: ({ smiles }) => {
    const all = descriptorsOf(moleculeOf(smiles).smiles) ?? {};
    const value = (name: string, digits: number) => (all[name] ?? 0).toFixed(digits);
    return [
      `mass ${value('amw', 1)}`,
      `tpsa ${value('tpsa', 0)}`,
      `logp ${value('CrippenClogP', 1)}`,
      `rings ${value('NumRings', 0)}`,
      `aromatic ${value('NumAromaticRings', 0)}`,
      `donors ${value('NumHBD', 0)}`,
      `acceptors ${value('NumHBA', 0)}`,
    ].join(', ');
  },
});

const estimate = defineTool({
  name: 'estimate',
  description: 'Gap and dipole of a molecule by GFN2-xTB, with how far each may be off.',
  arguments: argumentsSchema,
  placement: 'long',
  effect: 'pure',
  cost: { seconds: 1, usd: 0 },
  limits: { timeoutSeconds: 120, heartbeatSeconds: 10, maxAttempts: 3 },
  run: async ({ smiles }, context) => {
    const subject = { smiles: moleculeOf(smiles).smiles };
    const finding = await calculateOnce('xtb', subject, context);
    if (finding.kind === 'abstained') throw new ToolRefusal(finding.reason);
    const properties = onScale(finding.values, XTB_SCALE);
    if (properties === undefined) throw new ToolRefusal('neither gap nor dipole could be measured');
    return inWords(properties);
  },
});

export const moleculeTools: readonly Tool[] = [validate, describe, estimate];
