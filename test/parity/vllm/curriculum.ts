import path from 'node:path';
import { exportModel } from '../../../cli/export-model.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { sampledPieces } from '../../../store/rollout/sampled-pieces.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { checkpointOf } from '../../../store/training/find-checkpoints.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import { RunClient, until } from '../../support/run-client.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { differenceOf } from './difference.ts';
import { RealVllm } from './real-vllm.ts';

/** Seconds that a run may take on two cores beside other work. */
const RUN_MS = 1_200_000;
const STEPS = 6;
/** Below this success of both says nothing of whether they succeed alike. */
const LEAST_SHARE = 0.1;
const tiny = tinySpec({ maxSteps: STEPS, groupsPerStep: 16, groupsPerWorkflow: 4 });
const spec = {
  ...tiny,
  // Heads as vLLM's kernels for processors take them, and no tied head: on processors a reload leaves that as it was.
  model: { ...tiny.model, hiddenSize: 64, intermediateSize: 128, headSize: 32, tieEmbeddings: false },
  evaluation: { ...tiny.evaluation, count: 400 },
  retention: { keepLast: 100 },
};

/**
 * A run on the calculator whose policy is on the real vLLM, which is killed while it samples and started again with the
 * weights that it began with; beside it the same run with the decoder of workers.
 */
export async function curriculumOf(environment: string, folder: string, say: (text: string) => void) {
  const stack = await startStack(path.join(folder, 'stack'), { ui: false });
  const settings = settingsFor(stack, {});
  const workers = await startWorkers(settings, {
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
    logFile: path.join(folder, 'workers.log'),
  });
  const store = await ObjectStore.connect(settings.store);
  const runs = await RunClient.connect(settings);
  let server: RealVllm | undefined;
  try {
    say('the run with the decoder of workers …');
    const begun = performance.now();
    const local = await (await runs.start('local', spec)).result();
    const localSeconds = (performance.now() - begun) / 1000;
    const base = path.join(folder, 'base');
    const first = await checkpointOf(store, { run: 'local', step: 1 });
    await exportModel(store, first, base, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
    say('vLLM is started for the run …');
    const logFile = path.join(folder, 'vllm-run.log');
    server = await RealVllm.start({ environment, model: base, logprobsMode: 'processed_logprobs', logFile });
    const policy = { kind: 'http', server: 'vllm', urls: [server.url], folder: path.join(folder, 'staged') };
    const started = performance.now();
    const handle = await runs.start('served', { ...spec, policy });
    await runs.progress(handle, ({ phase, step }) => phase === 'rl' && (step?.stageStep ?? 0) >= 2, RUN_MS);
    await until(
      () => computing(server!.url),
      RUN_MS,
      () => 'vLLM has no request under way',
    );
    say('vLLM is killed while it samples …');
    await server.kill();
    const killed = performance.now();
    await server.up();
    const awaySeconds = (performance.now() - killed) / 1000;
    say('and is back with the weights that it began with; the run goes on …');
    const served = await handle.result();
    const servedSeconds = (performance.now() - started) / 1000;
    const pieces = await piecesOf(store, 'served');
    const sampled = pieces.map(({ served: by }) => by!.weights);
    const foreign = pieces.filter(({ served: by, tokens }) => {
      const [span] = by!.versions ?? [];
      return by!.versions?.length !== 1 || span!.version !== by!.weights || span!.end !== tokens.length;
    });
    const success = differenceOf(rateOf(served), rateOf(local));
    const steps = await readSteps(store, 'served');
    const held =
      JSON.stringify(served.end) === JSON.stringify(local.end) &&
      foreign.length === 0 &&
      success.low <= 0 &&
      success.high >= 0;
    return {
      held,
      end: { served: served.end, local: local.end },
      steps: { served: served.steps, local: local.steps },
      // Two policies that never succeed are alike in nothing that was to be shown.
      success: { ...success, tells: Math.max(success.served.share, success.local.share) >= LEAST_SHARE },
      seconds: { served: servedSeconds, local: localSeconds, away: awaySeconds },
      pieces: { stored: pieces.length, ofOtherWeights: foreign.length, weights: new Set(sampled).size },
      gaps: steps.flatMap(({ step, learner }) =>
        learner === null || learner.logprobGapMean === null
          ? []
          : [
              {
                step,
                mean: learner.logprobGapMean,
                max: learner.logprobGapMax,
                at: learner.logprobGapByPosition,
              },
            ],
      ),
    };
  } finally {
    await server?.kill();
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

async function piecesOf(store: ObjectStore, run: string) {
  const keys = (await store.list(`runs/${run}/parts/`)).map(({ key }) => key);
  const found = await Promise.all(
    keys.filter((key) => key.includes('/sampled-')).map((key) => store.find(key, sampledPieces)),
  );
  return found.map((piece) => piece!);
}

const rateOf = ({ after }: CurriculumResult) => {
  const { successes, trials } = after!.arms[0]!;
  return { successes, trials };
};
