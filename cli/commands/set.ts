import { Command, InvalidArgumentError } from 'commander';
import { GradusError } from '../../core/errors.ts';
import type { BudgetChange, RunChange } from '../../core/run-change.ts';
import type { ConnectionOptions } from '../connection.ts';
import { withConnectionFlags } from '../connection.ts';
import { print } from '../printable.ts';
import { answered } from '../../runs/control/answered.ts';
import { withRunning } from './steer.ts';

const LIMITS: readonly (keyof BudgetChange)[] = ['count', 'seconds', 'usd', 'perStep'];

/** `gradus set RUN --budget dft.count=100 --max-steps rl=50`: other limits for a run that goes on. */
export function setCommand(): Command {
  return withConnectionFlags(new Command('set'))
    .argument('<run>', 'its name in the store, or the id of its workflow')
    .option(
      '--budget <verifier.limit=value>',
      `a budget of the running stage and all later ones, such as dft.count=100 or dft.usd=none; limits: ${LIMITS.join(', ')}`,
      addBudget,
      {},
    )
    .option('--max-steps <stage=steps>', 'the most steps that a stage may take', addSteps, {})
    .option('--reason <text>', 'the reason, stored with the change')
    .action(
      (
        run: string,
        {
          budget,
          maxSteps,
          reason,
          ...options
        }: ConnectionOptions & {
          budget: Record<string, BudgetChange>;
          maxSteps: Record<string, number>;
          reason?: string;
        },
      ) => {
        const change: RunChange = {
          ...(Object.keys(budget).length > 0 && { budgets: budget }),
          ...(Object.keys(maxSteps).length > 0 && { maxSteps }),
          ...(reason !== undefined && { reason }),
        };
        if (change.budgets === undefined && change.maxSteps === undefined)
          throw new GradusError('spec', 'change', 'no change was given: use --budget or --max-steps');
        return withRunning(options, run, async (client, workflowId) => {
          const { changeRun } = await import('../../runs/control/change.ts');
          const { number, stage, step } = await answered(client, workflowId, () =>
            changeRun(client, workflowId, change),
          );
          print(
            `change ${number} of ${run}, made in ${stage}${step === null ? '' : ` at step ${step}`}: it holds from the next step on`,
          );
        });
      },
    );
}

/** Names of verifiers may have dots in them; limits have none. */
export function addBudget(text: string, before: Record<string, BudgetChange>): Record<string, BudgetChange> {
  const [, verifier, limit, value] = /^(.+)\.([^.=]+)=(.*)$/.exec(text) ?? [];
  if (verifier === undefined || !LIMITS.includes(limit as keyof BudgetChange))
    throw new InvalidArgumentError(`write VERIFIER.LIMIT=VALUE, with a limit of ${LIMITS.join(', ')}`);
  const number = value === 'none' ? null : numberOf(value!);
  return { ...before, [verifier]: { ...before[verifier], [limit!]: number } };
}

export function addSteps(text: string, before: Record<string, number>): Record<string, number> {
  const at = text.lastIndexOf('=');
  if (at < 1) throw new InvalidArgumentError('write STAGE=STEPS');
  return { ...before, [text.slice(0, at)]: numberOf(text.slice(at + 1)) };
}

function numberOf(text: string): number {
  const number = Number(text);
  if (text.trim() !== '' && Number.isFinite(number) && number >= 0) return number;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is no number of 0 or more`);
}
