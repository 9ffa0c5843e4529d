import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { loadEnvironments } from '../../environments/families/index.ts';
import { inThisProcess } from '../../environments/host/hosted-environment.ts';
import { readSteps } from '../../store/training/step-facts.ts';
import { withEngine } from '../installations.ts';
import { plainRun } from '../../test/support/plain-run.ts';
import { splitStages } from '../specs.ts';

// Records what the diagnoses read of the first RL stage of a spec, trained in this process: a line a step, floats with
// six digits. The stage is made small by options, and never ends before its last step. `--rounds`: of warm start at most,
// of which none has to succeed; `--module`: with environments, as `--environments` of a worker.
//
//   npx tsx bench/alarms/record-facts.ts examples/retail.json --steps 40 --groups 12 --to test/fixtures/step-facts/retail.json

const text = { type: 'string' } as const;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    steps: text,
    groups: text,
    rounds: text,
    module: { ...text, multiple: true, default: [] },
    to: text,
  },
});
const { steps, groups, rounds, module, to } = values;
if (positionals.length !== 1 || !steps || !groups || !to)
  throw new Error(
    'usage: record-facts.ts SPEC.json --steps N --groups N [--rounds N] [--module FILE] --to FILE',
  );

type Stage = { name: string; graduation: object } | { kind: string; name: string; graduation: object };
const written = JSON.parse(await readFile(positionals[0]!, 'utf8')) as {
  stages: Stage[];
  evaluation: object;
};
const [rl] = splitStages(written.stages).rl;
const few = ({ graduation }: Stage) =>
  rounds && { maxRounds: Number(rounds), graduation: { ...graduation, successAtLeast: 0 } };
const spec = {
  ...written,
  evaluation: { ...written.evaluation, count: 20 },
  stages: [
    ...written.stages.slice(0, written.stages.indexOf(rl!)).map((stage) => ({ ...stage, ...few(stage) })),
    {
      ...rl,
      maxSteps: Number(steps),
      groupsPerStep: Number(groups),
      graduation: { successAtLeast: 0.95, tasks: 100, everySteps: 20 },
      plateau: { evaluations: 200 },
    },
  ],
};

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const environments = inThisProcess((await loadEnvironments(module)).values());
await withEngine({ quick: false, say, signal: new AbortController().signal }, async (engine) => {
  await plainRun(spec, {
    ...engine,
    environments,
    run: 'recorded',
    onStep: ({ stage, stageStep, trainSuccess }) => say(`${stage} ${stageStep}: ${trainSuccess ?? ''}`),
  });
  const six = (_: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
  const lines = (await readSteps(engine.store, 'recorded'))
    .filter(({ stage }) => stage === rl!.name)
    .map(({ stageStep, rollout, batch, learner, heldOut, estimates }) =>
      JSON.stringify({ stageStep, rollout, batch, learner, heldOut, estimates }, six),
    );
  await writeFile(to, `[\n${lines.join(',\n')}\n]\n`);
});
