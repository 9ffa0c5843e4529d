import { Command } from 'commander';
import { withConnectionFlags, withSources } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { note, print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';

/** `gradus why RUN`: what a run waits for. */
export function whyCommand(): Command {
  return withConnectionFlags(new Command('why'))
    .argument('<run>', 'its name in the store, or the id of its workflow')
    .option('--json', 'one JSON object')
    .action((run: string, options: ConnectionOptions & { json?: boolean }) =>
      withSources(options, async (sources) => {
        const [{ whyOf }, { whyInWords }] = await Promise.all([
          import('../../runs/overview/why.ts'),
          import('../../runs/overview/why-in-words.ts'),
        ]);
        const said = await whyOf(sources, run);
        // It was asked for what only Temporal knows.
        if (said.reasons.some(({ kind }) => kind === 'unknown')) process.exitCode = 1;
        if (options.json === true) {
          printJson('why', said);
          return;
        }
        const { status, stage, step, reasons, problems } = said;
        const at = [stage, step === null ? null : `step ${step}`].filter((part) => part !== null);
        print(`${said.run ?? said.workflowId}: ${[status, ...at].join(', ')}`);
        for (const reason of reasons) {
          print(`  ${whyInWords(reason, Date.now())}`);
          if (reason.kind !== 'question' || reason.question === null) continue;
          for (const { answer, effect } of reason.question.answers) print(`    ${answer}: ${effect}`);
        }
        for (const problem of problems) note(`  (${problem})`);
      }),
    );
}
