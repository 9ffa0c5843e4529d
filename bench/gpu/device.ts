import { ON_GPU, ours } from '../engine/engines.ts';
import type { AnchorProcess } from '../engine/anchor-process.ts';

/** What is checked: a GPU, with the folders of the CUDA libraries; or the processor, where the check is rehearsed. */
export type Device = { kind: 'gpu'; libraries: readonly string[] } | { kind: 'cpu' };

/** Our engine on the device, or on the processor beside it. */
export function engineOn(device: Device): AnchorProcess {
  if (device.kind === 'cpu')
    return ours({ ...process.env, GRADUS_LEARNER_BACKEND: 'cpu', GRADUS_DECODER: 'stock' });
  const path = [...device.libraries, process.env['LD_LIBRARY_PATH']].filter(Boolean).join(':');
  return ours({
    ...process.env,
    LD_LIBRARY_PATH: path,
    GRADUS_LEARNER_BACKEND: 'gpu',
    GRADUS_DECODER: 'cuda',
  });
}

export const onProcessor = (): AnchorProcess => ours({ ...process.env, GRADUS_LEARNER_BACKEND: 'cpu' });

/** For an anchor that is to run beside it. */
export const anchorOn = ({ kind }: Device): NodeJS.ProcessEnv => (kind === 'gpu' ? ON_GPU : {});
