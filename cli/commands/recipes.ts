import { Command } from 'commander';
import { commandLine, IN_CHECKOUT } from '../../core/installation.ts';
import { readRecipe, recipeNames } from '../../recipes/recipe.ts';
import { printJson } from '../json/print-json.ts';
import { note, print } from '../printable.ts';
import { textTable } from '../../runs/text-table.ts';

/** `gradus recipes`: published systems that can be run, and what each of them is said to show. */
export function recipesCommand(): Command {
  return new Command('recipes')
    .option('--json', 'one JSON object a line')
    .action(async ({ json }: { json?: boolean }) => {
      const rows: string[][] = [];
      for (const name of await recipeNames()) {
        const { paper, arxiv, runs, claims } = await readRecipe(name);
        rows.push([name, `${paper}\narXiv ${arxiv}`, claims.map(({ claim }) => claim).join('\n')]);
        if (json === true)
          printJson('recipes', {
            name,
            paper,
            arxiv,
            runs: runs.map((run) => run.name),
            claims: claims.map(({ claim, treatment, control = null, figure }) => ({
              claim,
              treatment,
              control,
              figure: figure ? { name: figure.name, direction: figure.direction } : null,
            })),
          });
      }
      if (json === true) return;
      print(textTable(['recipe', 'paper', 'claim'], rows));
      const init = IN_CHECKOUT ? 'npx gradus init --recipe NAME' : commandLine('init --recipe NAME');
      note(`"${init}" writes one into ${IN_CHECKOUT ? 'a project of your own' : 'this folder'}.`);
    });
}
