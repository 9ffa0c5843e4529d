import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { PolicyPool } from '../../activities/rollout/policy-pool.ts';
import { createDecoder } from '../../engine/decoder/decoder.ts';
import { createLocalLearner } from '../../engine/learner/local-learner.ts';
import { inThisProcess } from '../../environments/host/hosted-environment.ts';
import { loadEnvironments } from '../../environments/families/index.ts';
import { readSteps } from '../../store/training/step-facts.ts';
import { TestServer } from '../../test/support/store/server.ts';
import { plainRun } from '../plain-run.ts';

// Records what the diagnoses read of the first RL stage of a spec, trained in this process: a line a step, floats with
// six digits. The stage is made small by options, and never ends before its last step.
//
//   npx tsx bench/alarms/record-facts.ts examples/retail.json --steps 40 --groups 12 --to test/fixtures/step-facts/retail.json

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    steps: { type: 'string' },
    groups: { type: 'string' },
    /** Rounds of warm start at most, of which none has to succeed. */
    rounds: { type: 'string' },
    /** Modules with environments, as `--environments` of a worker. */
    module: { type: 'string', multiple: true, default: [] },
    to: { type: 'string' },
  },
});
const { steps, groups, rounds, module, to } = values;
if (positionals.length !== 1 || !steps || !groups || !to)
  throw new Error(
    'usage: record-facts.ts SPEC.json --steps N --groups N [--rounds N] [--module FILE] --to FILE',
  );

interface Stage {
  kind?: string;
  name: string;
  graduation: object;
}

const written = JSON.parse(await readFile(positionals[0]!, 'utf8')) as {
  stages: Stage[];
  evaluation: object;
};
const rl = written.stages.find(({ kind }) => kind !== 'supervised')!;
const spec = {
  ...written,
  evaluation: { ...written.evaluation, count: 20 },
  stages: [
    ...written.stages
      .slice(0, written.stages.indexOf(rl))
      .map((stage) =>
        rounds
          ? { ...stage, maxRounds: Number(rounds), graduation: { ...stage.graduation, successAtLeast: 0 } }
          : stage,
      ),
    {
      ...rl,
      maxSteps: Number(steps),
      groupsPerStep: Number(groups),
      graduation: { successAtLeast: 0.95, tasks: 100, everySteps: 20 },
      plateau: { evaluations: 200 },
    },
  ],
};

const server = await TestServer.start();
try {
  const store = await server.connect();
  const policies = new PolicyPool(store, () => createDecoder({ threads: 1 }));
  const learner = await createLocalLearner();
  const environments = inThisProcess((await loadEnvironments(module)).values());
  await plainRun(spec, {
    store,
    environments,
    policies,
    learner,
    run: 'recorded',
    onStep: ({ stage, stageStep, trainSuccess }) =>
      process.stderr.write(`${stage} ${stageStep}: ${trainSuccess ?? ''}\n`),
  });
  const six = (_: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
  const lines = (await readSteps(store, 'recorded'))
    .filter(({ stage }) => stage === rl.name)
    .map(({ stageStep, rollout, batch, learner: learnt, heldOut, estimates }) =>
      JSON.stringify({ stageStep, rollout, batch, learner: learnt, heldOut, estimates }, six),
    );
  await writeFile(to, `[\n${lines.join(',\n')}\n]\n`);
  await learner.close();
  await policies.close();
  store.close();
} finally {
  await server.remove();
}
