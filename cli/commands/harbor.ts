import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Split } from '../../core/refs.ts';
import { harborTask } from '../../environments/families/swe/harbor/export.ts';
import { swePackagesEnvironment } from '../../environments/families/swe/packages/environment.ts';
import { packageBug } from '../../environments/families/swe/packages/bugs.ts';
import { print } from '../printable.ts';

/** `gradus harbor FOLDER`: tasks of the environment swe as task folders of Harbor's. */
export function harborCommand(): Command {
  return new Command('harbor')
    .argument('<folder>', 'where the task folders are written')
    .addOption(new Option('--split <split>').choices(['train', 'heldout', 'test']).default('test'))
    .option('--level <level>', 'only this level', integer)
    .option('--count <count>', 'at most this many a level', integer)
    .action(async (folder: string, options: { split: Split; level?: number; count?: number }) => {
      const environment = swePackagesEnvironment();
      const levels = environment.levels.filter((level) => level === (options.level ?? level));
      for (const level of levels) {
        const there = environment.taskCount(options.split, level);
        for (let index = 0; index < Math.min(there, options.count ?? there); index++) {
          const ref = { environment: environment.name, split: options.split, level, index };
          const bug = packageBug(ref);
          const name = `swe-${bug.package}-${options.split}-${level}-${index}`;
          const { prompt } = await environment.task(ref);
          const files = harborTask(bug, prompt, {
            org: 'gradus',
            name,
            version: environment.version!,
            description: `A bug of one token in ${bug.package}.`,
          });
          for (const [file, text] of files) {
            const target = path.join(folder, name, file);
            await mkdir(path.dirname(target), { recursive: true });
            await writeFile(target, text, { mode: file.endsWith('.sh') ? 0o755 : 0o644 });
          }
          print(path.join(folder, name));
        }
      }
    });
}

function integer(text: string): number {
  if (!/^\d+$/u.test(text)) throw new InvalidArgumentError('not a whole number');
  return Number(text);
}
