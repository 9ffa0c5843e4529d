import { existsSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from './command.ts';
import { takeFromWheels } from './wheel.ts';
import type { PinnedWheel } from './wheel.ts';

/**
 * What `tensorflow[and-cuda]` of the version that tensorflow-native.ts takes asks for, as pip resolves it (`pip install
 * --dry-run --report`). Each with the SHA-256 of its wheels for x64 and arm64.
 */
export const CUDA_WHEELS: readonly PinnedWheel[] = [
  {
    project: 'nvidia-cublas-cu12',
    version: '12.9.3.13',
    sha256: [
      'd7d51055f161b317c7105ddaae90e71eda059026074ffef93cf7cde2886bfe72',
      '918a8781956115d34b1db49e0e7b7befba8d101661c4b560ed4d42e0e17bebc3',
    ],
  },
  {
    project: 'nvidia-cuda-cupti-cu12',
    version: '12.8.90',
    sha256: [
      'ea0cb07ebda26bb9b29ba82cda34849e73c166c18162d3913575b0c9db9a6182',
      '4412396548808ddfed3f17a467b104ba7751e6b58678a4b840675c56d21cf7ed',
    ],
  },
  {
    project: 'nvidia-cuda-nvcc-cu12',
    version: '12.9.86',
    sha256: [
      '5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0',
      '44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b',
    ],
  },
  {
    project: 'nvidia-cuda-nvrtc-cu12',
    version: '12.9.86',
    sha256: [
      '210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4',
      '096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead',
    ],
  },
  {
    project: 'nvidia-cuda-runtime-cu12',
    version: '12.9.79',
    sha256: [
      '25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3',
      '83469a846206f2a733db0c42e223589ab62fd2fabac4432d2f8802de4bded0a4',
    ],
  },
  {
    project: 'nvidia-cudnn-cu12',
    version: '9.28.0.42',
    sha256: [
      '9ff58b7f36dacd0a93e89f8f2957b52466889217963701daa15e577317cfa375',
      'f88db8fc1a0a5f458e19aa7b08fbe3500aeb9e2bb8dea6293ecbce170364ad72',
    ],
  },
  {
    project: 'nvidia-cufft-cu12',
    version: '11.4.1.4',
    sha256: [
      'c67884f2a7d276b4b80eb56a79322a95df592ae5e765cf1243693365ccab4e28',
      '1a28c9b12260a1aa7a8fd12f5ebd82d027963d635ba82ff39a1acfa7c4c0fbcf',
    ],
  },
  {
    project: 'nvidia-curand-cu12',
    version: '10.3.10.19',
    sha256: [
      '49b274db4780d421bd2ccd362e1415c13887c53c214f0d4b761752b8f9f6aa1e',
      'de663377feb1697e1d30ed587b07d5721fdd6d2015c738d7528a6002a6134d37',
    ],
  },
  {
    project: 'nvidia-cusolver-cu12',
    version: '11.7.5.82',
    sha256: [
      '15da72d1340d29b5b3cf3fd100e3cd53421dde36002eda6ed93811af63c40d88',
      '62efa83e4ace59a4c734d052bb72158e888aa7b770e1a5f601682f16fe5b4fd2',
    ],
  },
  {
    project: 'nvidia-cusparse-cu12',
    version: '12.5.10.65',
    sha256: [
      '73060ce019ac064a057267c585bf1fd5a353734151f87472ff02b2c5c9984e78',
      '221c73e7482dd93eda44e65ce567c031c07e2f93f6fa0ecd3ba876a195023e83',
    ],
  },
  {
    project: 'nvidia-nccl-cu12',
    version: '2.32.3',
    sha256: [
      'bb94b2348e4861d5e8aa00b36c3d12d9bdf9c6369b82cbb723de0b582280a21c',
      '061af42ae1044816820e16b872075e243d1ac0656f51860fbc8e106c257aa83a',
    ],
  },
  {
    project: 'nvidia-nvjitlink-cu12',
    version: '12.9.86',
    sha256: [
      'e3f1171dbdc83c5932a45f0f4c99180a70de9bd2718c1ab77d14104f6d7147f9',
      '994a05ef08ef4b0b299829cde613a424382aff7efb08a7172c1fa616cc3af2ca',
    ],
  },
];

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
export async function installCudaLibraries(python: string, entry: string, scratch: string): Promise<void> {
  if (await systemHasCuda()) return;
  await takeFromWheels(python, CUDA_WHEELS, scratch, (file) =>
    /^nvidia\/.*(\.so[.\d]*|libdevice.*\.bc)$/.test(file) ? path.join(entry, file) : undefined,
  );
}
