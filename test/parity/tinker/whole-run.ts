import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { demonstrationCorpus } from '../../../activities/training/corpus.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { ids } from '../../../core/names.ts';
import type { Role } from '../../../core/names.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { SPECIAL_TOKENS } from '../../../engine/dialect/gradus/special-tokens.ts';
import { initialWeights } from '../../../engine/learner/initial-weights.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { Tokenizer } from '../../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../../engine/tokenizer/train-bpe.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import { isDone } from '../../support/ended.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { RunClient } from '../../support/run-client.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { QWEN3, writeQwen3 } from './base-model.ts';
import { PythonServer } from './python-server.ts';

export interface TrainedAndKilled {
  what: string;
  steps: number;
  /** Steps whose weights or loss are others than those of a first run that nobody disturbed. */
  differing: number;
  /** What these differ by at most, in the loss. */
  lossApart: number;
  /** What these may differ by; 0: to the bit, weights and all. */
  bound: number;
  held: boolean;
}

interface Facts {
  loss: number;
  weights: string;
}

/** Two runs that nobody disturbs differ in the last bits of log-probs, where SkyRL samples them. Of a loss. */
const ROUNDING = 1e-6;
const PROCESSES: Role[][] = [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']];

function specOf(sampledAt?: string) {
  const { model: _, stages, ...rest } = tinySpec({ maxSteps: 3, groupsPerStep: 4, groupsPerWorkflow: 4 });
  const [warmStart, rl] = stages;
  return {
    ...rest,
    model: { from: 'brought', lora: { rank: 4, alpha: 32 } },
    ...(sampledAt !== undefined && { policy: { kind: 'http', server: 'tinker', urls: [sampledAt] } }),
    stages: [
      {
        ...warmStart,
        optimizer: { ...warmStart.optimizer, maxGradientNorm: 0 },
        updatesPerRound: 8,
        maxRounds: 1,
      },
      { ...rl, optimizer: { maxGradientNorm: 0 }, algorithm: { ...rl.algorithm, beta: 0 } },
    ],
  };
}

/**
 * Whole runs on SkyRL's server, which trains them and then also samples them: two that nobody disturbs, and one
 * whose learner's worker is killed in a step, and whose server and workers are killed together in a later one.
 */
export async function trainAndKill(
  python: string,
  folder: string,
  say: (text: string) => void,
): Promise<TrainedAndKilled[]> {
  const tokenizer = JSON.stringify(
    trainTokenizer(demonstrationCorpus([calculatorEnvironment()], 50), 400, SPECIAL_TOKENS),
  );
  const config: ModelConfig = {
    ...QWEN3,
    vocabSize: Tokenizer.fromJson(tokenizer).vocabSize,
    maxPositions: 128,
  };
  const model = path.join(folder, 'brought');
  await writeQwen3(model, config, initialWeights(config, 3), newModelFiles(config, tokenizer));
  const state = path.join(folder, 'skyrl');
  await mkdir(state);
  const server = await PythonServer.start('skyrl', { python, model, folder: state });
  const stack = await startStack(path.join(folder, 'stack'), { ui: false });
  const settings = settingsFor(stack, { GRADUS_TINKER_URL: server.url });
  const logFile = path.join(folder, 'workers.log');
  const workers = await startWorkers(settings, { processes: PROCESSES, logFile });
  const store = await ObjectStore.connect(settings.store);
  const runs = await RunClient.connect(settings);
  const factsOf = async (run: string) =>
    (await readSteps(store, run)).map(({ learner, checkpoint }) => ({
      loss: learner?.loss ?? 0,
      weights: checkpoint.weights,
    }));
  const made: TrainedAndKilled[] = [];
  const put = (what: string, one: Facts[], other: Facts[], bound: number): void => {
    const others = one.filter(
      ({ loss, weights }, i) => other[i]?.loss !== loss || other[i].weights !== weights,
    );
    const lossApart = Math.max(0, ...one.map(({ loss }, i) => Math.abs(loss - (other[i]?.loss ?? Infinity))));
    const steps = Math.max(one.length, other.length);
    const differing = others.length;
    const held = bound === 0 ? differing === 0 && one.length === other.length : lossApart <= bound;
    const compared = { what, steps, differing, lossApart, bound, held };
    say(JSON.stringify(compared));
    made.push(compared);
  };
  try {
    await importModel(store, model, 'brought');
    for (const [how, sampledAt, roles, bound] of [
      ['trains', undefined, ['learner'], 0],
      ['trains-and-samples', server.url, ['learner', 'rollout'], ROUNDING],
    ] as const) {
      const spec = specOf(sampledAt);
      const begun = Date.now();
      const alone = await (await runs.start(`alone-${how}`, spec)).result();
      if (!isDone(alone.end)) throw new Error(`the run that nobody disturbed ended as ${alone.end}`);
      say(`a run that SkyRL ${how} ended after ${Math.round((Date.now() - begun) / 1000)} s`);
      // In what sampling by itself is not equal no kill has changed anything.
      await (await runs.start(`again-${how}`, spec)).result();
      put(
        `a whole run that SkyRL ${how}, again`,
        await factsOf(`alone-${how}`),
        await factsOf(`again-${how}`),
        bound,
      );
      const name = `killed-${how}`;
      const handle = await runs.start(name, spec);
      await killInActivity({ workers, runs }, () => ids.stage(name, 'warm-start'), 'trainStep', 'learner');
      await runs.progress(handle, ({ step }) => step?.stage === 'rl' && step.stageStep >= 1, 1_200_000);
      await server.restart();
      await killAndReplace(workers, ...roles);
      await handle.result();
      put(`a whole run that SkyRL ${how}, killed`, await factsOf(`alone-${how}`), await factsOf(name), bound);
    }
    return made;
  } finally {
    await runs.close();
    store.close();
    await workers.stop();
    await stack.stop();
    await server.kill();
  }
}
