import { once } from 'node:events';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTraining } from '../../../activities/training/learner.ts';
import { GradusError } from '../../../core/errors.ts';
import type { Episode, RolloutGroup } from '../../../core/episode/episode.ts';
import { RandomStream } from '../../../core/random.ts';
import type { ScoreRequest, ScoreResult } from '../../../core/requests/batch.ts';
import type { TrainRequest, TrainResult } from '../../../core/requests/learner.ts';
import { DEFAULT_COMPUTE } from '../../../engine/learner/contract.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import { probeKey } from '../../../store/keys.ts';
import { probes } from '../../../store/training/probes.ts';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { TRAIN_REQUEST } from '../../../store/training/train-request.ts';
import { scoresCodec } from '../../../store/training/scores.ts';
import { LEARNER_CASES } from '../../support/engine/learner-cases.ts';
import { apart, caseOf, sizeOf } from '../../support/learner-steps.ts';
import { ROOT } from '../../support/markdown.ts';
import { FaultyProxy } from '../store/faulty-proxy.ts';
import { openTestStore } from '../../support/test-store.ts';
import { TorchLines, withTorch } from '../../support/torch-learner.ts';

// What a learner is asked besides steps that go well: scores, a step that is there already, and what it refuses.

const { server, store } = await openTestStore();
const { signal } = new AbortController();
const caseNamed = (name: string) => LEARNER_CASES.find((one) => one.name === name)!;

const REWARD: ScoreRequest['reward'] = {
  components: [{ verifier: 'v', role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
};

/** Two groups: of three episodes, one was cut and one has failed; what grows the first comes with it. */
function groups(): RolloutGroup[] {
  const random = new RandomStream('groups');
  const scored: Episode['outcome'] = { kind: 'scored', reward: 1, components: [] };
  const episode = (sample: number, more: Partial<Episode>): Episode => {
    const tokens = Array.from({ length: 5 + 3 * sample }, () => random.int(0, 58));
    return {
      task: 0,
      sample,
      tokens,
      mask: tokens.map((_, i) => (i === 2 ? 0 : 1)),
      samplerLogprobs: tokens.map(() => -4),
      kept: tokens.map((token, i) => (i < 3 ? [] : [token, 59].toSorted((a, b) => a - b))),
      turns: [],
      status: { kind: 'answered', answer: '' },
      outcome: scored,
      ...more,
    };
  };
  const group = (id: string, episodes: Episode[], more: Partial<RolloutGroup> = {}): RolloutGroup => ({
    id,
    weights: '',
    temperature: 0.9,
    tasks: [
      {
        ref: { environment: 'e', split: 'train', level: 1, index: 0 },
        prompt: '',
        promptTokens: [1, 2, 3, 4].slice(0, 1 + (id.length % 3)),
      },
    ],
    episodes,
    ...more,
  });
  return [
    group('group-1', [
      episode(0, {}),
      episode(1, { outcome: { kind: 'truncated', limit: 'turns', reward: 0, components: [] } }),
      episode(2, { outcome: { kind: 'failed', boundary: 'tool', reason: '' } }),
    ]),
    group('group-22', [episode(0, {})]),
    group('group-1-grown', [episode(3, {})], { grows: 'group-1' }),
  ];
}

await withTorch((python) => {
  let learner: Learner;
  let torch: TorchLines;
  let proxy: FaultyProxy;
  const losses = path.join(ROOT, 'examples/own_loss.py');
  const surroundings = { ...server.environment(), GRADUS_TORCH_LOSSES: losses };

  beforeAll(async () => {
    proxy = await FaultyProxy.start(server.port);
    torch = new TorchLines(python, { ...surroundings, GRADUS_S3_URL: `http://127.0.0.1:${proxy.port}` });
    learner = await createLocalLearner({ backend: 'cpu' });
  });
  afterAll(async () => {
    await torch?.close();
    await proxy?.close();
    await learner?.close();
  });

  test.each([0, 2])('scores of tokens are those of the reference, with a top-k of %i', async (topK) => {
    const training = createTraining({ store, learner });
    const { first, request } = await caseOf(store, `scored-${topK}`, caseNamed('clipped with a critic'));
    const { first: reference } = await caseOf(store, `other-${topK}`, caseNamed('clipped'));
    const { checkpoint } = await training.trainStep(request(1, first), signal);
    const refs = await Promise.all(
      groups().map(async (group) => {
        const place = { run: `scored-${topK}`, stage: 'rl', step: 1 };
        return (await putTrajectories(store, place, group)).ref;
      }),
    );
    const asked: ScoreRequest = {
      run: `by-gradus-${topK}`,
      stage: 'rl',
      step: 1,
      groups: refs,
      reward: REWARD,
      scores: ['values', 'reference', 'policy'],
      from: { temperature: 0.9, topK },
      policy: checkpoint,
      reference,
    };
    const wanted = await training.scoreTokens(asked, signal);
    const got = await torch.result<ScoreResult>('scoreTokens', { ...asked, run: `by-torch-${topK}` });
    const [a, b] = [await store.read(wanted.scores, scoresCodec), await store.read(got.scores, scoresCodec)];
    expect(Object.keys(b).toSorted()).toEqual(['policy', 'reference', 'values']);
    for (const name of asked.scores) {
      expect(b[name]!.length).toBe(a[name]!.length);
      expect(a[name]!.some((value) => value !== 0)).toBe(true);
      a[name]!.forEach((value, i) => expect(Math.abs(value - b[name]![i]!), name).toBeLessThan(1e-5));
    }
  });

  test.each(['clipped', 'an adapter'])('the probe of "%s" is that of the reference', async (name) => {
    const training = createTraining({ store, learner });
    const { first, request } = await caseOf(store, `probed-${name.replace(' ', '-')}`, caseNamed(name));
    const { checkpoint } = await training.trainStep(request(1, first), signal);
    await training.probePolicy({ run: 'probed-by-gradus', checkpoint }, signal);
    await torch.result('probePolicy', { run: 'probed-by-torch', checkpoint });
    const [ours, theirs] = await Promise.all(
      ['gradus', 'torch'].map((by) => store.find(probeKey(`probed-by-${by}`, checkpoint.weights), probes)),
    );
    expect(theirs!.tokens).toEqual(ours!.tokens);
    expect(theirs!.logprobs).toHaveLength(ours!.tokens.length - 1);
    theirs!.logprobs.forEach((value, i) => expect(Math.abs(value - ours!.logprobs[i]!)).toBeLessThan(1e-5));
  });

  test('a step whose samples are further from the weights than it allows is refused', async () => {
    const { first, request } = await caseOf(store, 'gap', caseNamed('clipped'));
    const { metrics } = await torch.result<TrainResult>('trainStep', request(1, first));
    const bounded = (maxLogprobGap: number, stageStep: number) => ({
      ...request(1, first),
      stageStep,
      maxLogprobGap,
    });
    const said = await torch.ask<TrainResult>('trainStep', bounded(metrics.logprobGapMean! * 0.99, 2));
    expect(said).toMatchObject({ failure: { type: 'gradus.learner.logprob-gap', retryable: false } });
    const within = await torch.result<TrainResult>('trainStep', bounded(metrics.logprobGapMean! * 1.01, 3));
    expect(within.metrics.loss).toBeCloseTo(metrics.loss!, 6);
  });

  test('a loss of a project is computed: once as strong it is that of REINFORCE, and twice as strong its double', async () => {
    const { first, request } = await caseOf(store, 'own-loss', caseNamed('reinforce'));
    const step = (stageStep: number, objective: object) =>
      torch.ask<TrainResult>('trainStep', { ...request(1, first), stageStep, objective });
    const from = { temperature: 0.9, topK: 0 };
    const own = (strength: number) => ({
      ...from,
      kind: 'own',
      name: 'scaled-reinforce',
      options: { strength, maxCompletionTokens: 40 },
    });
    const said = await Promise.all([step(1, request(1, first).objective!), step(2, own(1)), step(3, own(2))]);
    const [plain, once, twice] = said.map((answer) => ('result' in answer ? answer.result.metrics : answer));
    expect(once).toMatchObject({ loss: expect.any(Number) as number });
    expect(once).toEqual({ ...plain, seconds: (once as { seconds: number }).seconds });
    const [a, b] = [once, twice] as { loss: number; gradientNorm: number }[];
    expect(b!.loss).toBeCloseTo(2 * a!.loss, 5);
    expect(b!.gradientNorm).toBeCloseTo(2 * a!.gradientNorm, 5);

    expect(await step(4, { ...own(1), name: 'other' })).toMatchObject({
      failure: {
        type: 'gradus.learner.settings',
        message: expect.stringContaining("no loss 'other', it has scaled-reinforce") as string,
      },
    });
    const training = createTraining({ store, learner });
    const asked = { ...request(1, first), stageStep: 5, objective: own(1) as TrainRequest['objective'] };
    await expect(training.trainStep(asked, signal)).rejects.toMatchObject({ type: 'settings' });
  });

  test('a step that is there already is not made again', async () => {
    const { first, request } = await caseOf(store, 'there-already', caseNamed('clipped'));
    const result = await torch.result<TrainResult>('trainStep', request(1, first));
    // Another rate would come to other weights.
    const other = { ...request(1, first), optimizer: { ...request(1, first).optimizer, learningRate: 0.1 } };
    const again = await torch.result<TrainResult>('trainStep', other);
    expect(again.checkpoint).toEqual(result.checkpoint);
    expect(again.metrics).toEqual(result.metrics);
  });

  test('where every third checkpoint has moments, a learner that is killed in the upload of a shard comes to the same digests', async () => {
    const compute = { ...DEFAULT_COMPUTE, saveOptimizerEvery: 3, maxShardBytes: 20_000 };
    const one = { ...caseNamed('clipped'), more: { compute } };
    const [kept, lost] = await Promise.all(
      ['moments-kept', 'moments-lost'].map((run) => caseOf(store, run, one)),
    );
    const digests = async ({ checkpoint }: TrainResult) => {
      const { manifest, state } = await loadCheckpoint(store, checkpoint);
      expect(state.firstMoments.size > 0).toBe(checkpoint.step === 3);
      const files = Object.entries(manifest.files).filter(([file]) => file !== TRAIN_REQUEST);
      return files.map(([file, { sha256 }]) => [file, sha256]);
    };
    const expected: [string, string][][] = [];
    let last = kept!.first;
    for (const step of [1, 2, 3]) {
      const made = await torch.result<TrainResult>('trainStep', kept!.request(step, last));
      expected.push((await digests(made)) as [string, string][]);
      last = made.checkpoint;
    }
    const shards = expected[0]!.map(([file]) => file).filter((file) => file.startsWith('model-'));
    expect(shards.length).toBeGreaterThan(2);
    last = lost!.first;
    for (const step of [1, 2, 3]) {
      const request = lost!.request(step, last);
      if (step === 3) {
        const stalled = proxy.stallAt(`/${shards[1]}`, 500);
        // With it go the moments of steps 1 and 2, which the store does not have.
        torch.process.stdin!.write(`${JSON.stringify({ activity: 'trainStep', request })}\n`);
        await stalled;
        torch.process.kill('SIGKILL');
        await once(torch.process, 'exit');
        torch = new TorchLines(python, surroundings);
      }
      const made = await torch.result<TrainResult>('trainStep', request);
      const files = await digests(made);
      expect(files, `step ${step}`).toEqual(expected[step - 1]);
      last = made.checkpoint;
    }
    // The TypeScript learner goes on from where the store has no moments, too.
    const training = createTraining({ store, learner });
    const second = (await findCheckpoints(store, 'moments-lost')).checkpoints.at(-2)!;
    const other = { ...lost!.request(3, second.ref), run: 'moments-other' };
    const { state } = await loadCheckpoint(store, (await training.trainStep(other, signal)).checkpoint);
    const { state: wanted } = await loadCheckpoint(store, last);
    expect(apart(wanted.weights, state.weights)).toBeLessThan(1e-3 * sizeOf(wanted.weights));
    expect(apart(wanted.firstMoments, state.firstMoments)).toBeLessThan(1e-3 * sizeOf(wanted.firstMoments));
  }, 600_000);

  test('products in bfloat16 come near to the step in float32, and the checkpoint says so', async () => {
    const compute = { precision: 'bfloat16' as const, gradientCheckpointing: true, microBatchTokens: 0 };
    const cases = [caseNamed('clipped'), { ...caseNamed('clipped'), more: { compute } }];
    const [full, half] = await Promise.all(cases.map((one, i) => caseOf(store, `precision-${i}`, one)));
    const a = await torch.result<TrainResult>('trainStep', full!.request(1, full!.first));
    const b = await torch.result<TrainResult>('trainStep', half!.request(1, half!.first));
    expect(Math.abs(b.metrics.entropy! / a.metrics.entropy! - 1)).toBeLessThan(0.02);
    expect(Math.abs(b.metrics.gradientNorm! / a.metrics.gradientNorm! - 1)).toBeLessThan(0.1);
    const [of, near] = [await loadCheckpoint(store, a.checkpoint), await loadCheckpoint(store, b.checkpoint)];
    expect(near.manifest.backend).toMatch(/, bfloat16$/);
    const distance = apart(of.state.weights, near.state.weights) / sizeOf(of.state.weights);
    expect(distance).toBeGreaterThan(0);
    expect(distance).toBeLessThan(0.01);
  });

  const lora = { rank: 2, alpha: 4, rsLora: false, targetModules: ['q_proj'] };
  const refused: [what: string, name: string, change: (request: TrainRequest) => Partial<TrainRequest>][] = [
    ['a loss without its reference', 'dpo', () => ({ reference: null })],
    ['a batch without the streams of a critic', 'supervised', () => caseNamed('a critic alone').more!],
    ['nothing to learn', 'clipped', () => ({ objective: null })],
    [
      'fewer teachers than weights',
      'distill, JSD, two teachers',
      ({ teachers }) => ({ teachers: teachers!.slice(1) }),
    ],
    [
      'weights of teachers that are no shares',
      'distill, JSD, two teachers',
      ({ objective }) => ({
        objective: { ...(objective as object), teacherWeights: [0.5, 0.7] } as TrainRequest['objective'],
      }),
    ],
    [
      'ids that were sampled among more',
      'clipped among kept ids',
      ({ objective }) => ({ objective: { ...objective, topK: 3 } as TrainRequest['objective'] }),
    ],
    [
      'a rate that breaks the weights',
      'clipped, several updates',
      ({ optimizer }) => ({ optimizer: { ...optimizer, learningRate: 1e30, warmupUpdates: 0 } }),
    ],
    [
      'a batch that is not there',
      'clipped',
      ({ batch }) => ({ batch: { ...batch, key: 'runs/nobody/batch.safetensors' } }),
    ],
    ['a batch that was changed', 'clipped', ({ batch }) => ({ batch: { ...batch, sha256: '0'.repeat(64) } })],
    [
      'weights that are others',
      'clipped',
      ({ parent }) => ({ parent: { ...parent, weights: '0'.repeat(64) } }),
    ],
  ];
  test.each(refused)('%s is refused as the reference refuses it', async (what, name, change) => {
    const run = what.replaceAll(' ', '-');
    const { first, request } = await caseOf(store, run, caseNamed(name));
    const asked = { ...request(1, first), ...change(request(1, first)) };
    const said = await torch.ask<TrainResult>('trainStep', asked);
    const thrown = await createTraining({ store, learner })
      .trainStep(asked, signal)
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(GradusError);
    const { boundary, type, retryable } = thrown as GradusError;
    expect(said).toMatchObject({ failure: { type: `gradus.${boundary}.${type}`, retryable } });
  });

  test('another adapter than the parent has is refused', async () => {
    const { first, request } = await caseOf(store, 'adapters', caseNamed('an adapter'));
    const { checkpoint } = await torch.result<TrainResult>('trainStep', request(1, first));
    const said = await torch.ask<TrainResult>('trainStep', { ...request(2, checkpoint), lora });
    expect(said).toMatchObject({ failure: { type: 'gradus.learner.adapter', retryable: false } });
  });
});
