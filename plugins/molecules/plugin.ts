import type { TierPlugin } from '../../workers/tier-plugin.ts';
import { CHEMISTRY_PYTHON, CHEMISTRY_TIERS, chemistryProcess } from './chemistry/process.ts';
import { findChemistry } from './chemistry/python.ts';

/** The verifiers xtb and dft of the environment molecules, which a worker in Python serves. */
export const chemistry: TierPlugin = {
  name: 'chemistry',
  environment: 'molecules',
  tiers: CHEMISTRY_TIERS,
  needs: 'the Python of its verifiers xtb and dft',
  setUp: 'RDKit, tblite and PySCF, for the verifiers xtb and dft of molecules: 200 MB to download',
  loadSetUp: () => import('./chemistry/setup.ts'),
  find: findChemistry,
  env: (python) => ({ [CHEMISTRY_PYTHON]: python }),
  process: (python, settings, env) => chemistryProcess(python, settings, { env }),
};
