import type { Json } from '../../../core/json/json.ts';
import { defineEnvironment, type PlainEnvironment } from '../../contract/environment.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { demonstrate } from './demonstrate.ts';
import { LEVELS } from './levels.ts';
import { presentMolecule } from './present.ts';
import { loadRdkit } from './rdkit.ts';
import { promptOf, targetAt } from './targets.ts';
import { moleculeTools } from './tools.ts';
import { dftVerifier, expertVerifier, moleculeVerifier, xtbVerifier } from './verifiers.ts';

/** Small organic molecules for a stated window of HOMO–LUMO gap and dipole, written as SMILES. */
export function moleculesEnvironment(): PlainEnvironment {
  return defineEnvironment({
    name: 'molecules',
    levels: LEVELS.map(({ level }) => level),
    tools: moleculeTools,
    verifiers: [moleculeVerifier(), formatVerifier(), xtbVerifier(), dftVerifier(), expertVerifier()],
    task: (ref) => {
      const target = targetAt(ref.split, ref.level, ref.index);
      return { ref, prompt: promptOf(target), info: { ...target } as unknown as Json };
    },
    demonstrate,
    taskCount: () => Infinity,
    present: presentMolecule,
    prepare: loadRdkit,
  });
}
