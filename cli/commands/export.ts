import path from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import type { FloatDtype } from '../../engine/safetensors/dtypes.ts';
import { parseCheckpointName } from '../checkpoint-name.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { exportAdapter } from '../export-adapter.ts';
import { exportModel } from '../export-model.ts';
import { print } from '../printable.ts';

const DTYPES: Record<string, FloatDtype> = { float32: 'F32', bfloat16: 'BF16', float16: 'F16' };

interface ExportOptions extends ConnectionOptions {
  to: string;
  dtype: keyof typeof DTYPES;
  maxShardSize: number;
  onnx?: boolean;
  adapter?: boolean;
}

/** `gradus export RUN --to DIR`. */
export function exportCommand(): Command {
  return withConnectionFlags(new Command('export'))
    .argument('<run>', 'RUN, its last checkpoint, or RUN@STEP', parseCheckpointName)
    .requiredOption('--to <dir>', 'a new or empty folder')
    .addOption(
      new Option('--dtype <dtype>', 'how the weights are stored')
        .choices(Object.keys(DTYPES))
        .default('float32'),
    )
    .addOption(
      new Option('--max-shard-size <size>', 'largest weight file, like 500MB or 5GB')
        .argParser(parseSize)
        .default(5e9, '5GB'),
    )
    .option('--onnx', 'also as ONNX, for serving with onnxruntime')
    .option('--adapter', "only the LoRA adapter, in PEFT's layout; otherwise it is merged into the weights")
    .action((name: ReturnType<typeof parseCheckpointName>, options: ExportOptions) =>
      withStoreOf(
        options,
        async (store) => {
          const ref = await checkpointOf(store, name);
          const target = path.resolve(options.to);
          if (options.adapter) await exportAdapter(store, ref, target);
          else
            await exportModel(store, ref, target, {
              dtype: DTYPES[options.dtype]!,
              maxShardBytes: options.maxShardSize,
              onnx: options.onnx ?? false,
            });
          print(`${name.run}, step ${ref.step}, is in ${target}`);
        },
        { patient: true },
      ),
    );
}

function parseSize(text: string): number {
  const parts = /^(\d+(?:\.\d+)?)(KB|MB|GB)$/.exec(text);
  const bytes = parts ? Number(parts[1]) * { KB: 1e3, MB: 1e6, GB: 1e9 }[parts[2] as 'KB' | 'MB' | 'GB'] : 0;
  if (bytes > 0) return bytes;
  throw new InvalidArgumentError('write a number with KB, MB or GB');
}
