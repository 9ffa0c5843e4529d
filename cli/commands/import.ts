import { existsSync } from 'node:fs';
import path from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import { importAdapter, isAdapterFolder, statedBase } from '../../store/training/import-adapter.ts';
import type { AdapterBase } from '../../store/training/import-adapter.ts';
import { importModel } from '../../store/training/import-model.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { GradusError } from '../../core/errors.ts';
import type { DialectsSpoken } from '../../engine/dialect/dialects-spoken.ts';
import { parameterCount } from '../../core/model/config.ts';
import { parseCheckpointName } from '../checkpoint-name.ts';
import { withConnectionFlags, withWritableStore } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';

interface ImportOptions extends ConnectionOptions {
  as?: string;
  base?: string;
}

/**
 * `gradus import DIR`: a Hugging Face folder, or an adapter of PEFT's merged into `--base`, becomes the first checkpoint of
 * a run that a spec can begin with.
 */
export function importCommand(): Command {
  return withConnectionFlags(new Command('import'))
    .argument(
      '<dir>',
      "a folder with config.json, tokenizer.json and weights in safetensors, or an adapter in PEFT's layout",
    )
    .option('--base <model>', 'for a LoRA adapter: the folder, RUN or RUN@STEP of its base model')
    .option('--as <name>', "its name in the store (default: the folder's name)", parseName)
    .action((folder: string, options: ImportOptions) =>
      withWritableStore(options, async (store) => {
        const name = options.as ?? parseName(path.basename(path.resolve(folder)));
        const base = await baseOf(store, folder, options.base);
        const { ref, config, dialects } = base
          ? await importAdapter(store, folder, base, name)
          : await importModel(store, folder, name);
        print(
          `${name}: ${(parameterCount(config) / 1e6).toFixed(1)} million parameters, ` +
            `SHA-256 of its weights ${ref.weights}\nbegin with it: {"model": {"from": "${name}"}}`,
        );
        for (const line of dialectLines(dialects)) print(line);
      }),
    );
}

/** Which dialects a model can speak, and what keeps it from the others, a line each. */
export function dialectLines({ byItself, all }: DialectsSpoken): string[] {
  const others = all
    .filter(({ name, missing }) => missing === null && name !== byItself)
    .map(({ name }) => name);
  return [
    byItself === null
      ? 'its files do not say which dialect it speaks: name one in the spec'
      : `it speaks ${byItself} where the spec names no other dialect`,
    ...(others.length === 0
      ? []
      : [
          `it can be trained to speak ${others.join(', ')}: {"model": {"from": …, "dialect": {"name": "${others[0]}"}}}`,
        ]),
    ...all.flatMap(({ name, missing }) => (missing === null ? [] : [`not ${name}: ${missing}`])),
  ];
}

/** What a folder's adapter is merged into; undefined for a folder with a model. */
async function baseOf(
  store: ObjectStore,
  folder: string,
  base: string | undefined,
): Promise<AdapterBase | undefined> {
  const refuse = (why: string): never => {
    throw new GradusError('store', 'adapter-base', `${folder} ${why}`);
  };
  if (!isAdapterFolder(folder)) {
    return base === undefined ? undefined : refuse('is no LoRA adapter: leave out --base');
  }
  if (base === undefined) {
    const stated = await statedBase(folder);
    const whose = stated === undefined ? '' : `, which its maker calls "${stated}"`;
    return refuse(`has a LoRA adapter and not its base${whose}: name the folder or the run by --base`);
  }
  if (existsSync(base)) return { folder: base };
  return { checkpoint: await checkpointOf(store, parseCheckpointName(base)) };
}

function parseName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(text)) return text;
  throw new InvalidArgumentError(
    `"${text}" cannot be a name: use letters, digits, ".", "_" and "-" (give one with --as)`,
  );
}
