import path from 'node:path';
import { shareBytesOfDescendants } from '../../../bench/processes.ts';
import { exportModel } from '../../../cli/export-model.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { sampledPieces } from '../../../store/rollout/sampled-pieces.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { checkpointOf } from '../../../store/training/find-checkpoints.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import { pause, resume } from '../../../workflows/control/messages.ts';
import { RunClient, until } from '../../support/run-client.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { differenceOf } from './difference.ts';
import { RealVllm } from './real-vllm.ts';
import { piecesByServer, placeOf, routingOf } from '../../support/policy-server/routing.ts';
import type { PlacedPiece } from '../../support/policy-server/routing.ts';

/** Seconds that a run may take on two cores beside other work. */
const RUN_MS = 1_800_000;
const STEPS = 16;
const REPLICAS = 2;
/** Left when the one that was killed is back, at least but for one under way. */
const STEPS_FOR_BOTH = 6;
/** Below this success of both says nothing of whether they succeed alike. */
const LEAST_SHARE = 0.1;
const tiny = tinySpec({ maxSteps: STEPS, groupsPerStep: 16, groupsPerWorkflow: 4 });
const [warmStart, rl] = tiny.stages;
// A warm start after which a third of the tasks is solved, and steps that teach more.
const spec = {
  ...tiny,
  // Heads as vLLM's kernels for processors take them, and no tied head: on processors a reload leaves that as it was.
  model: { ...tiny.model, hiddenSize: 64, intermediateSize: 128, headSize: 32, tieEmbeddings: false },
  stages: [
    {
      ...warmStart,
      updatesPerRound: 200,
      maxRounds: 1,
      optimizer: { learningRate: 0.002, warmupUpdates: 50, beta2: 0.98 },
    },
    { ...rl, optimizer: { learningRate: 3e-4 }, graduation: { ...rl.graduation, everySteps: STEPS } },
  ],
  evaluation: { ...tiny.evaluation, count: 400 },
  retention: { keepLast: 100 },
};

export type Dtype = 'float32' | 'bfloat16';

/**
 * A run on the calculator whose policy is on two real vLLMs, one of which is killed while it samples and started again with
 * the weights that it began with, when the other one has gone on; beside it the same run with the decoder of workers.
 */
export async function curriculumOf(
  environment: string,
  folder: string,
  dtype: Dtype,
  say: (text: string) => void,
) {
  const stack = await startStack(path.join(folder, 'stack'), { ui: false });
  const settings = settingsFor(stack, {});
  const workers = await startWorkers(settings, {
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
    logFile: path.join(folder, 'workers.log'),
  });
  const store = await ObjectStore.connect(settings.store);
  const runs = await RunClient.connect(settings);
  const servers: RealVllm[] = [];
  try {
    say('the run with the decoder of workers …');
    const begun = performance.now();
    const local = await (await runs.start('local', spec)).result();
    const localSeconds = (performance.now() - begun) / 1000;
    const base = path.join(folder, 'base');
    const first = await checkpointOf(store, { run: 'local', step: 1 });
    await exportModel(store, first, base, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
    for (let core = 0; core < REPLICAS; core++) {
      say(`vLLM ${core + 1} is started for the run …`);
      const logFile = path.join(folder, `vllm-run-${core + 1}.log`);
      const logprobsMode = 'processed_logprobs' as const;
      servers.push(await RealVllm.start({ environment, model: base, logprobsMode, logFile, dtype, core }));
    }
    const [killed] = servers as [RealVllm, RealVllm];
    const policy = {
      kind: 'http',
      server: 'vllm',
      urls: servers.map(({ url }) => url),
      folder: path.join(folder, 'staged'),
      ...(dtype === 'bfloat16' && { dtype }),
    };
    const started = performance.now();
    const handle = await runs.start('served', { ...spec, policy });
    const stageStep = async (least: number): Promise<number> => {
      const { step } = await runs.progress(
        handle,
        ({ phase, step: at }) => phase === 'rl' && (at?.stageStep ?? 0) >= least,
        RUN_MS,
      );
      return step!.stageStep;
    };
    const before = await stageStep(2);
    await until(
      () => computing(killed.url),
      RUN_MS,
      () => 'vLLM has no request under way',
    );
    const bytes = servers.map(({ pid }) => shareBytesOfDescendants(pid).reduce((sum, one) => sum + one, 0));
    say('vLLM 1 is killed while it samples …');
    await killed.kill();
    const killedAt = performance.now();
    const alone = await stageStep(before + 2);
    say(
      `the run has gone on to step ${alone} without it; it is started with the weights that it began with …`,
    );
    const up = killed.up();
    // So that steps are left for both where a start takes minutes.
    const far = stageStep(STEPS - STEPS_FOR_BOTH).then(() => 'far' as const);
    far.catch(() => undefined);
    if ((await Promise.race([up, far])) === 'far') {
      say('the run is paused until it is there …');
      await handle.signal(pause);
      await up;
      await handle.signal(resume);
    }
    const awaySeconds = (performance.now() - killedAt) / 1000;
    const back = (await runs.progress(handle, ({ step }) => step !== null, RUN_MS)).step!.stageStep;
    say(`and is back after step ${back}; the run goes on …`);
    const served = await handle.result();
    const servedSeconds = (performance.now() - started) / 1000;
    const pieces = await piecesOf(store, 'served');
    const foreign = pieces.filter(({ piece: { served: by, tokens } }) => {
      const [span] = by!.versions ?? [];
      return by!.versions?.length !== 1 || span!.version !== by!.weights || span!.end !== tokens.length;
    });
    const success = differenceOf(rateOf(served), rateOf(local));
    const steps = await readSteps(store, 'served');
    const sampled = pieces.filter(({ stage }) => stage === 'rl');
    const during = (from: number, to: number) => sampled.filter(({ step }) => step >= from && step <= to);
    const routing = routingOf(during(1, before));
    const whileAway = during(before + 2, alone);
    const afterwards = during(back + 2, STEPS);
    // Before it draws a token again: weights are given, and the fixed sequence is scored under them.
    const asked = await killed.asked();
    const [given, scored, drawn] = ['/collective_rpc', '/v1/completions', '/inference/v1/generate'].map(
      (route) => asked.indexOf(route),
    ) as [number, number, number];
    const checks = {
      sameEnd: JSON.stringify(served.end) === JSON.stringify(local.end),
      noForeignWeights: foreign.length === 0,
      sameSuccess: success.low <= 0 && success.high >= 0,
      successTells: Math.max(success.served.share, success.local.share) >= LEAST_SHARE,
      // Requests of a task go to one server more often than by chance, and both have some.
      routedByPrefix: routing.own > routing.byChance && Object.keys(routing.pieces).length === REPLICAS,
      wentOnAlone: whileAway.length > 0 && !piecesByServer(whileAway).has(killed.url),
      cameBack: piecesByServer(afterwards).has(killed.url),
      provenFirst: given >= 0 && given < scored && scored < drawn,
    };
    return {
      held: Object.values(checks).every(Boolean),
      checks,
      dtype,
      end: { served: served.end, local: local.end },
      steps: { served: served.steps, local: local.steps },
      success,
      seconds: { served: servedSeconds, local: localSeconds, away: awaySeconds },
      megabytes: bytes.map((of) => Math.round(of / 2 ** 20)),
      pieces: {
        stored: pieces.length,
        ofOtherWeights: foreign.length,
        weights: new Set(pieces.map(({ piece }) => piece.served!.weights)).size,
      },
      routing: {
        beforeTheKill: routing,
        whileAway: { steps: [before + 2, alone], pieces: Object.fromEntries(piecesByServer(whileAway)) },
        afterwards: { steps: [back + 2, STEPS], ...(afterwards.length > 0 && routingOf(afterwards)) },
      },
      askedOnceBack: [...new Set(asked)],
      gaps: steps.flatMap(({ stage, step, learner }) =>
        stage !== 'rl' || learner === null || learner.logprobGapMean === null
          ? []
          : [
              {
                step,
                mean: learner.logprobGapMean,
                max: learner.logprobGapMax,
                at: learner.logprobGapByPosition,
                effective: learner.effectiveSamples,
              },
            ],
      ),
    };
  } finally {
    await Promise.all(servers.map((server) => server.kill()));
    store.close();
    await runs.close();
    await workers.stop();
    await stack.stop();
  }
}

/** True while vLLM decodes something. */
async function computing(url: string): Promise<true | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const running = /^vllm:num_requests_running\{[^}]*\} (\S+)$/mu.exec(text)?.[1];
  return Number(running) > 0 ? true : undefined;
}

async function piecesOf(store: ObjectStore, run: string): Promise<PlacedPiece[]> {
  const keys = (await store.list(`runs/${run}/parts/`)).map(({ key }) => key);
  return Promise.all(
    keys
      .filter((key) => key.includes('/sampled-'))
      .map(async (key) => ({
        ...placeOf(key, rl.numGenerations),
        piece: (await store.find(key, sampledPieces))!,
      })),
  );
}

const rateOf = ({ after }: CurriculumResult) => {
  const { successes, trials } = after!.arms[0]!;
  return { successes, trials };
};
