import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { GradusError } from '../../core/errors.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { slowCalculatorTool } from '../../environments/families/calculator/tool.ts';
import { defineTool } from '../../environments/contract/environment.ts';
import type { Environment, Tool, ToolOutput, ToolContext } from '../../environments/contract/environment.ts';

// The slow calculator with milliseconds for seconds, for workers that are started with this module in
// GRADUS_ENVIRONMENTS. How its calls go wrong is in the name of the run that makes them, so that one installation
// serves every fault and all runs have the same tasks; what each attempt lived through goes into the file
// GRADUS_TEST_CALLS, a line of JSON each.

export interface CallEvent {
  /** The idempotency key: `<run>/<stage>/<step>/<group>/<episode>/<turn>`. */
  call: string;
  attempt: number;
  /** `end`: by itself, well or not. */
  event: 'start' | 'end' | 'aborted';
}

type Fault = (next: () => Promise<ToolOutput>, context: ToolContext) => Promise<ToolOutput>;

/** Faults by the first word of the run's name; any other name has none. */
const FAULTS: Record<string, Fault> = {
  // Alive, and not done before the file GRADUS_TEST_CALLS.release is there.
  held: async (next, context) => {
    const { signal, attempt, idempotencyKey } = context;
    if (attempt > 1 || !inFirstStep(idempotencyKey)) return next();
    for (let beat = 0; !existsSync(`${process.env['GRADUS_TEST_CALLS']}.release`); beat++) {
      context.heartbeat(beat);
      await wait(100, undefined, { signal });
    }
    return next();
  },
  // As `held`, but only one episode of each group.
  lost: (next, context) => (isFirstEpisode(context.idempotencyKey) ? FAULTS['held']!(next, context) : next()),
  // Neither alive nor done, and deaf: it does not even look at the signal.
  deaf: async (next, { attempt, idempotencyKey }) => {
    if (attempt === 1 && isFirstEpisode(idempotencyKey)) await wait(600_000, undefined, { ref: false });
    return next();
  },
  // One episode of each group is out of luck for good.
  doomed: async (next, { idempotencyKey }) => {
    if (!isFirstEpisode(idempotencyKey)) return next();
    throw new GradusError('tool', 'gone', 'the machine behind it was scrapped');
  },
};

const parts = (call: string): string[] => call.split('/');
const inFirstStep = (call: string): boolean => parts(call)[1] === 'rl' && parts(call)[2] === '1';
const isFirstEpisode = (call: string): boolean => parts(call)[1] === 'rl' && parts(call)[4] === '0';

function brief(effect: Tool['effect']): Tool {
  const options = { name: 'calculator', seconds: 0.02 };
  const sure = slowCalculatorTool({ ...options, failureProbability: 0 });
  const flaky = slowCalculatorTool({ ...options, failureProbability: 0.3 });
  return defineTool({
    ...sure,
    effect,
    limits: { ...sure.limits, heartbeatSeconds: 10 },
    run: async (args, context) => {
      const { idempotencyKey, attempt, signal } = context;
      const kind = parts(idempotencyKey)[0]!.split('-')[0]!;
      await note({ call: idempotencyKey, attempt, event: 'start' });
      const tool = kind === 'flaky' ? flaky : sure;
      const next = async (): Promise<ToolOutput> => tool.run(args, context);
      try {
        const answer = await (FAULTS[kind] ?? next)(next, context);
        await note({ call: idempotencyKey, attempt, event: 'end' });
        return answer;
      } catch (error) {
        await note({ call: idempotencyKey, attempt, event: signal.aborted ? 'aborted' : 'end' });
        throw error;
      }
    },
  });
}

async function note(event: CallEvent): Promise<void> {
  const file = process.env['GRADUS_TEST_CALLS'];
  if (file !== undefined) await appendFile(file, `${JSON.stringify(event)}\n`);
}

const environments: Environment[] = [
  calculatorEnvironment('calculator-brief', brief('idempotent')),
  calculatorEnvironment('calculator-once', brief('once')),
];
export default environments;
