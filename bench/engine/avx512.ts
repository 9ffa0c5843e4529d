import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { cacheEntry, cacheRoot } from '../../infra/cache-dir.ts';
import { findOnPath, runCommand, tailOf } from '../../infra/setup/command.ts';

/** MKL asks this of the processor's maker before it takes its AVX-512 code, which AMD's processors run as well. */
const SOURCE = `int mkl_serv_intel_cpu_true(void) { return 1; }
int mkl_serv_intel_cpu(void) { return 1; }
`;

/**
 * The environment under which PyTorch's MKL uses AVX-512 on a processor that is not Intel's: without it PyTorch would
 * be measured at half its speed. Throws GradusError('infra', 'build-failed').
 */
export async function withAvx512(env: NodeJS.ProcessEnv = process.env): Promise<NodeJS.ProcessEnv> {
  const folder = cacheEntry(cacheRoot(env), { name: 'bench-mkl', version: '1' });
  const library = path.join(folder, 'mkl.so');
  if (!existsSync(library)) {
    const compiler = (await findOnPath('gcc', env)) ?? (await findOnPath('clang', env));
    if (compiler === undefined) {
      throw new GradusError(
        'infra',
        'build-failed',
        'gcc or clang is needed to measure PyTorch at its full speed',
      );
    }
    await mkdir(folder, { recursive: true });
    const source = path.join(folder, `mkl-${process.pid}.c`);
    await writeFile(source, SOURCE);
    const partial = `${library}.${process.pid}`;
    const built = await runCommand(compiler, ['-shared', '-fPIC', '-O1', source, '-o', partial]);
    if (built.code !== 0) throw new GradusError('infra', 'build-failed', tailOf(built.stderr));
    await rename(partial, library);
  }
  return { ...env, LD_PRELOAD: library };
}
