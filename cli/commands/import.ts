import path from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { importModel } from '../../activities/store/import-model.ts';
import { parameterCount } from '../../engine/model-config.ts';
import { withConnectionFlags, withStore } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';

interface ImportOptions extends ConnectionOptions {
  as?: string;
}

/** `gradus import DIR`: a Hugging Face folder becomes the first checkpoint of a run that a spec can begin with. */
export function importCommand(): Command {
  return withConnectionFlags(new Command('import'))
    .description('Brings in a Hugging Face folder; a spec begins with it by {"model": {"from": "NAME"}}.')
    .argument('<dir>', 'has config.json, tokenizer.json and the weights in safetensors')
    .option('--as <name>', "what it is called in the store (default: the folder's name)", parseName)
    .action((folder: string, options: ImportOptions) =>
      withStore(options, async (store) => {
        const name = options.as ?? parseName(path.basename(path.resolve(folder)));
        const { ref, config } = await importModel(store, folder, name);
        console.log(
          `${name}: ${(parameterCount(config) / 1e6).toFixed(1)} million parameters, ` +
            `SHA-256 of its weights ${ref.weights}\nbegin with it: {"model": {"from": "${name}"}}`,
        );
      }),
    );
}

function parseName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(text)) return text;
  throw new InvalidArgumentError(
    `"${text}" cannot be a name: use letters, digits, ".", "_" and "-" (give one with --as)`,
  );
}
