import { packBatch } from '../../activities/training/training-batch.ts';
import { demonstrationCorpus } from '../../activities/training/corpus.ts';
import { demonstrationSequences } from '../../activities/training/demonstrations.ts';
import { createTraining } from '../../activities/training/learner.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import { randomKey } from '../../core/random.ts';
import { median } from '../../core/statistics/median.ts';
import { tokenizerConfigOf } from '../../engine/dialect/checkpoint-dialect.ts';
import { SPECIAL_TOKENS } from '../../engine/dialect/gradus/special-tokens.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { DEFAULT_COMPUTE } from '../../engine/learner/contract.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import type { LocalPolicy } from '../../engine/policy.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../engine/tokenizer/train-bpe.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { describeTool } from '../../environments/host/facts.ts';
import { inThisProcess } from '../../environments/host/hosted-environment.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { putBatch } from '../../store/training/batches.ts';
import { saveCheckpoint } from '../../store/training/checkpoints.ts';
import { randomWeights } from '../../test/support/engine/random-model.ts';
import { freshState } from '../../test/support/engine/tiny.ts';
import { interleavedRuns, benchRowsOf } from '../bench.ts';
import type { Bench, BenchOptions } from '../bench.ts';
import { openEngine, watchedLearner, withEmptyStore } from '../installations.ts';
import { sum } from '../processes.ts';
import { ADAM, GRPO } from '../specs.ts';
import { MODELS, THREADS } from './engines.ts';
import type { ModelSize } from './engines.ts';

/** The part of a step that the goal allows. */
const GOAL = 0.05;
/** The demo's: 64 tasks with 8 samples each, of which about half teach something once the policy is half good. */
const [TASKS, SAMPLES, TAUGHT] = [64, 8, 32];
/** The first step traces its graphs, and until the third one decoder of the pool has never had weights. */
const WARM_UPS = 2;

/** Seconds of the parts of a step, which follow each other. */
interface Seconds {
  rollout: number;
  updates: number;
  /** The new state on its way out of the learner's process. */
  returned: number;
  /** The checkpoint on its way into the store, its manifest last. */
  written: number;
  /** From the store, or the cache of blobs, into a decoder. */
  loaded: number;
  /** A prompt prefilled and a token drawn. */
  firstToken: number;
}

const handover = ({ returned, written, loaded, firstToken }: Seconds): number =>
  returned + written + loaded + firstToken;

/**
 * From the learner's last update to the first token of the new version, done by the activities themselves. The whole
 * that it is a part of has no verifiers, no batches and no Temporal: with them the part would only be smaller.
 */
export const handoverBench: Bench = async function* (options) {
  const { quick, say, signal } = options;
  const sizes = quick ? (['1M'] as const) : (['1M', '30M'] as const);
  const cases = sizes.flatMap((size) => [undefined, 10].map((every) => ({ size, every })));
  const scripts = await calculatorScripts(TASKS, signal);
  for (const { size, every } of cases) {
    const { steps } = await withSteps({ size, every, scripts }, options, (step) =>
      interleavedRuns(
        size,
        { steps: (run) => step(run + WARM_UPS) },
        (seconds) =>
          Object.entries(seconds)
            .map(([name, value]) => `${name} ${(value as number).toFixed(3)}`)
            .join(', '),
        { ...options, runs: options.runs ?? (quick ? 1 : 5), warmUps: WARM_UPS },
      ),
    );
    const wholes = steps.map((step) => step.rollout + step.updates + handover(step));
    const part = median(steps.map(handover)) / median(wholes);
    const kept = `${size} parameters${every === undefined ? '' : `, moments of every ${every}th step`}`;
    say(`  ${kept}: ${(100 * part).toFixed(1)} % of a step`);
    const length = Math.round(sum(scripts.map(scriptLength)) / TASKS);
    const name = `${kept}, last update to first token, vs ${100 * GOAL} % of a step of ${TASKS} × ${SAMPLES} episodes of ${length} tokens`;
    const goal = wholes.map((seconds) => GOAL * seconds);
    yield benchRowsOf('engine:handover')(name, 's', 'less', steps.map(handover), goal);
  }
};

/** Gives `use` a run that takes one step after another. */
function withSteps<T>(
  { size, every, scripts }: { size: ModelSize; every: number | undefined; scripts: readonly Script[] },
  options: BenchOptions,
  use: (step: (number: number) => Promise<Seconds>) => Promise<T>,
): Promise<T> {
  return withEmptyStore(options, async (settings) => {
    // As two workers on a machine have it: a connection each, and the folder of blobs in common.
    const theirs = await ObjectStore.connect(settings.store);
    const { policies, learner, close } = await openEngine({ ...settings, decoderThreads: THREADS });
    const watched = watchedLearner(learner);
    const training = createTraining({ store: theirs, learner: watched.learner });
    const config = MODELS[size];
    try {
      let checkpoint = await saveCheckpoint(theirs, {
        run: 'bench',
        stage: 'initialize',
        step: 0,
        backend: 'none',
        createdBy: 'bench',
        state: freshState(config, randomWeights(config)),
        files: newModelFiles(config, calculatorTokenizer()),
      });
      let lease = await policies.lease(checkpoint);
      return await use(async (number) => {
        const begun = performance.now();
        const sequences = await rollOut(lease.policy, scripts, number);
        const rolledOut = performance.now();
        lease.release();
        const taught = packBatch(sequences.slice(0, TAUGHT * SAMPLES), {
          minibatch: 256,
          epochs: 1,
          seed: 1,
        });
        const { ref: batch } = await putBatch(theirs, `runs/bench/batches/${number}`, taught);
        const request = {
          run: 'bench',
          stage: 'bench',
          stageStep: number,
          step: number,
          parent: checkpoint,
          batch,
          objective: GRPO,
          optimizer: { ...ADAM, learningRate: 3e-4, beta2: 0.98 },
          resetOptimizer: false,
          ...(every !== undefined && { compute: { ...DEFAULT_COMPUTE, saveOptimizerEvery: every } }),
          seed: 1,
          reference: null,
        };
        ({ checkpoint } = await training.trainStep(request, options.signal));
        const written = performance.now();
        lease = await policies.lease(checkpoint);
        const loaded = performance.now();
        await turn(lease.policy, `first/${number}`, scripts[0]!.prefix, [], [], 1);
        const answered = performance.now();
        const { updates, seconds, returned } = watched.last;
        return {
          rollout: (rolledOut - begun) / 1000,
          updates,
          returned: seconds - updates,
          written: (written - returned) / 1000,
          loaded: (loaded - written) / 1000,
          firstToken: (answered - loaded) / 1000,
        };
      });
    } finally {
      await close();
      theirs.close();
    }
  });
}

/** How an episode goes: its prompt, and for each turn how much is sampled and what is read after it. */
interface Script {
  prefix: number[];
  turns: { sampled: number; observation: number[] }[];
}

const scriptLength = ({ prefix, turns }: Script): number =>
  prefix.length + sum(turns.map(({ sampled, observation }) => sampled + observation.length));

const calculator = calculatorEnvironment();

/** The tokenizer that the demo learns. */
export const calculatorTokenizer = (): string =>
  JSON.stringify(trainTokenizer(demonstrationCorpus([calculator], 400), 512, SPECIAL_TOKENS));

/** Episodes of the calculator's levels 1 to 3 as the expert plays them. */
async function calculatorScripts(count: number, signal: AbortSignal): Promise<Script[]> {
  const json = calculatorTokenizer();
  const format = tokenizerConfigOf(newModelFiles(MODELS['1M'], json));
  const dialect = openDialect(Tokenizer.fromJson(json), format, calculator.tools.map(describeTool));
  const arms = [1, 2, 3].map((level) => ({ environment: calculator.name, level }));
  const asked = { arms, count: 4 * count, round: 1, seed: 1 };
  const sequences = await demonstrationSequences(inThisProcess([calculator]), () => dialect, asked, signal);
  // Of a mistake only the last turn is masked in, so its other turns cannot be told from what was read.
  const right = sequences.filter(({ streams }) => streams.advantages!.every((weight) => weight >= 0));
  return right.slice(0, count).map(scriptOf);
}

function scriptOf({ tokens, mask }: TrainingSample): Script {
  const next = (bit: number, from: number): number => {
    const found = mask.indexOf(bit, from);
    return found < 0 ? mask.length : found;
  };
  const first = next(1, 0);
  const turns: Script['turns'] = [];
  for (let at = first; at < tokens.length;) {
    const read = next(0, at);
    const written = next(1, read);
    turns.push({ sampled: read - at, observation: tokens.slice(read, written) });
    at = written;
  }
  return { prefix: tokens.slice(0, first), turns };
}

/** All samples of all scripts at once: as many tokens in turn as the script has, whatever they are. */
const rollOut = (policy: LocalPolicy, scripts: readonly Script[], step: number): Promise<TrainingSample[]> =>
  Promise.all(
    scripts.flatMap((script, task) =>
      Array.from({ length: SAMPLES }, (_, sample) => episode(policy, script, `${step}/${task}/${sample}`)),
    ),
  );

async function episode(
  policy: LocalPolicy,
  { prefix, turns }: Script,
  session: string,
): Promise<TrainingSample> {
  const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);
  const mask = zeros(prefix.length);
  const samplerLogprobs = zeros(prefix.length);
  const continuation: number[] = [];
  for (const { sampled, observation } of turns) {
    const drawn = await turn(policy, session, prefix, continuation, mask.slice(prefix.length), sampled);
    continuation.push(...drawn.tokens, ...observation);
    mask.push(...drawn.tokens.map(() => 1), ...zeros(observation.length));
    samplerLogprobs.push(...drawn.samplerLogprobs, ...zeros(observation.length));
  }
  policy.release(session);
  // Rewards are not what is measured: half of the samples did well.
  const advantage = randomKey(session).k0 % 2 === 0 ? 1 : -1;
  const advantages = mask.map((bit) => bit * advantage);
  return { tokens: [...prefix, ...continuation], mask, streams: { advantages, samplerLogprobs } };
}

function turn(
  policy: LocalPolicy,
  session: string,
  prefix: number[],
  continuation: readonly number[],
  mask: readonly number[],
  maxNewTokens: number,
) {
  const sampling = { temperature: 1, topK: 0, topP: 1 };
  const asked = { session, prefix, continuation, mask, maxNewTokens, stopTokens: [] };
  return policy.sample({ ...asked, sampling, key: randomKey(session) });
}
