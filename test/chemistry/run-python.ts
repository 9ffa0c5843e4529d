import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { ensureChemistry } from '../../plugins/molecules/chemistry/python.ts';

// `npm run test:chemistry`: the Python side's own tests, with the Python that `npm run setup:chemistry` makes.

const root = path.resolve(import.meta.dirname, '..', '..');
const python = await ensureChemistry((text) => process.stderr.write(`setup: ${text}\n`));
const child = spawn(python, ['-m', 'unittest', 'discover', '--start-directory', import.meta.dirname], {
  stdio: 'inherit',
  env: {
    ...process.env,
    PYTHONPATH: path.join(root, 'plugins/molecules'),
    PYTHONDONTWRITEBYTECODE: '1',
    OMP_NUM_THREADS: '1',
  },
});
const [code] = (await once(child, 'exit')) as [number | null];
process.exitCode = code ?? 1;
