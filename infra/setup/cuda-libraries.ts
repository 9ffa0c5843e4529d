import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { runCommand } from './command.ts';
import { downloadWheel, extract } from './wheel.ts';

/**
 * The CUDA wheels that a TensorFlow wheel was built for, from its metadata: `Requires-Dist: nvidia-cudnn-cu12<10.0,
 * >=9.3.0.75; extra == "and-cuda"` → `nvidia-cudnn-cu12<10.0,>=9.3.0.75`.
 */
export function cudaRequirements(metadata: string): string[] {
  const requirements = metadata.matchAll(
    /^Requires-Dist: *(nvidia-[^;]+?) *; *extra *== *["']and-cuda["']/gm,
  );
  return [...requirements].map((match) => (match[1] ?? '').replaceAll(/[\s()]/g, ''));
}

/** Whether the dynamic linker already knows a CUDA 12 with cuDNN 9. */
async function systemHasCuda(): Promise<boolean> {
  const ldconfig = ['/sbin/ldconfig', '/usr/sbin/ldconfig'].find((file) => existsSync(file));
  if (ldconfig === undefined) return false;
  const { stdout } = await runCommand(ldconfig, ['-p']);
  return ['libcudart.so.12', 'libcudnn.so.9', 'libcublas.so.12'].every((name) => stdout.includes(name));
}

/**
 * Puts CUDA's libraries under `<entry>/nvidia`, where libtensorflow looks for them, unless the system has them.
 * @throws GradusError infra/download-failed
 */
export async function installCudaLibraries(
  python: string,
  tensorFlowWheel: string,
  entry: string,
  scratch: string,
): Promise<void> {
  if (await systemHasCuda()) return;
  const metadata = path.join(scratch, 'METADATA');
  await extract(tensorFlowWheel, (file) => (file.endsWith('.dist-info/METADATA') ? metadata : undefined));
  for (const requirement of cudaRequirements(await readFile(metadata, 'utf8'))) {
    const folder = await mkdtemp(path.join(scratch, 'cuda-'));
    const wheel = await downloadWheel(python, requirement, folder);
    await extract(wheel, (file) =>
      /^nvidia\/.*(\.so[.\d]*|libdevice.*\.bc)$/.test(file) ? path.join(entry, file) : undefined,
    );
    await rm(folder, { recursive: true }); // one at a time: together they are gigabytes
  }
}
