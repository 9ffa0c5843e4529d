import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { TrainState } from '../../../../../engine/learner/contract.ts';
import { createLearner, type RemoteLearner } from '../../../../../engine/learner/process/remote-learner.ts';
import { initialWeights } from '../../../../../engine/learner/initial-weights.ts';
import { initialAdapter } from '../../../../../engine/lora/initial-adapter.ts';
import {
  bytes,
  freshState,
  GRPO,
  inUpdates,
  largestDifference,
  lively,
  randomBatch,
  settings,
  TINY,
  withStreams,
} from '../../../../support/engine/tiny.ts';

const open: RemoteLearner[] = [];
afterEach(async () => {
  for (const learner of open.splice(0)) await learner.close();
});
/** One of the test's own, closed after it. */
const start = async (options: Parameters<typeof createLearner>[0] = { backend: 'cpu' }) => {
  const learner = await createLearner(options);
  open.push(learner);
  return learner;
};

/** Two that tests share which close none: a start, and the first step, take longer than all that they then compute. */
const shared = new Map<'one' | 'other', Promise<RemoteLearner>>();
const sharedLearner = (which: 'one' | 'other' = 'one'): Promise<RemoteLearner> => {
  const learner = shared.get(which) ?? createLearner({ backend: 'cpu' });
  shared.set(which, learner);
  return learner;
};
afterAll(async () => {
  for (const learner of shared.values()) await (await learner).close();
});

const digest = (state: TrainState) =>
  createHash('sha256')
    .update(bytes(state.weights))
    .update(bytes(state.firstMoments))
    .update(bytes(state.secondMoments))
    .digest('hex');

const batch = inUpdates(randomBatch(40), { minibatch: 16, epochs: 2 });
const plan = settings({ ...GRPO, importanceCap: 2, beta: 0.05 });
const reference = lively(TINY, 2);
/** Takes longer than any test waits. */
const endless = inUpdates(batch, { epochs: 500 });

/** Of memory that a process held, in MB. */
const peak = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

describe('a learner in a process of its own', () => {
  it('is given up where it is not ready in time, and says what to look at', async () => {
    const late = start({ backend: 'cpu', readyWithinSeconds: 0.01 });
    await expect(late).rejects.toMatchObject({ boundary: 'learner', type: 'slow-start', retryable: true });
    await expect(late).rejects.toThrow(/not ready within 0\.01 s.*how much memory/);
  });

  it('repeats to the bit in another process, from its own state or from a copy', async () => {
    const [a, b] = await Promise.all([sharedLearner(), sharedLearner('other')]);
    expect(a.backend).toMatch(/^tensorflow 2\.\d+\.\d+ cpu × \d+$/);
    expect(a.pid).not.toBe(b.pid);
    let [inA, inB] = [freshState(), freshState()];
    for (let i = 0; i < 4; i++) {
      inA = (await a.step(inA, batch, plan, { reference })).state;
      inB = (await b.step(structuredClone(inB), batch, plan, structuredClone({ reference }))).state;
      expect(digest(inA)).toBe(digest(inB));
    }
    expect(inA.updates).toBe(24);
  });

  it('repeats to the bit when the model is large enough for its kernels to share the cores', async () => {
    const config = {
      ...TINY,
      vocabSize: 512,
      hiddenSize: 128,
      intermediateSize: 384,
      headSize: 32,
      maxPositions: 96,
    };
    const large = randomBatch(48, config);
    const digests = await Promise.all(
      [await sharedLearner(), await sharedLearner('other')].map(async (learner) => {
        let state = freshState(config);
        for (let i = 0; i < 3; i++) state = (await learner.step(state, large, settings(GRPO))).state;
        return digest(state);
      }),
    );
    expect(digests[0]).toBe(digests[1]);
  });

  it('tells of its progress', async () => {
    const learner = await sharedLearner();
    const seen: number[] = [];
    const many = inUpdates(batch, { minibatch: 2, epochs: 10 });
    const { metrics } = await learner.step(freshState(), many, settings(GRPO), undefined, (done) =>
      seen.push(done),
    );
    expect(metrics.updates).toBe(200);
    expect(seen.length).toBeGreaterThan(200);
  });

  it('fails retryably when its process is killed in mid-step, and the next step has a new process', async () => {
    const learner = await sharedLearner();
    const expected = await learner.step(freshState(), batch, plan, { reference });
    const killed = learner.pid!;
    // Once: what it has said before its end may be heard after it.
    let isKilled = false;
    const dying = learner.step(expected.state, endless, settings(GRPO), undefined, () => {
      if (!isKilled) process.kill(killed, 'SIGKILL');
      isKilled = true;
    });
    await expect(dying).rejects.toMatchObject({ boundary: 'learner', type: 'process-died', retryable: true });
    const again = await learner.step(freshState(), batch, plan, { reference });
    expect(learner.pid).not.toBe(killed);
    expect(digest(again.state)).toBe(digest(expected.state));
  });

  it('leaves moments in its process, where they end with it', async () => {
    const learner = await sharedLearner();
    const without = { ...plan, withoutMoments: true };
    const first = await learner.step(freshState(), batch, plan, { reference });
    const expected = await learner.step(first.state, batch, plan, { reference });
    const left = await learner.step(freshState(), batch, without, { reference });
    expect([left.state.withoutMoments, left.state.firstMoments.size]).toEqual([true, 0]);
    // A scoring between two steps takes nothing from them.
    await learner.score(left.state, batch, { logprobs: { temperature: 1, topK: 0 } });
    const next = await learner.step(left.state, batch, plan, { reference });
    expect(digest(next.state)).toBe(digest(expected.state));
    const last = await learner.step(next.state, batch, without, { reference });
    const killed = learner.pid!;
    process.kill(killed, 'SIGKILL');
    await expect.poll(() => learner.pid).not.toBe(killed);
    const gone = { boundary: 'learner', type: 'moments-gone', retryable: true };
    await expect(learner.step(last.state, batch, plan, { reference })).rejects.toMatchObject(gone);
    const again = await learner.step(next.state, batch, plan, { reference });
    expect(bytes(again.state.weights).equals(bytes(last.state.weights))).toBe(true);
  });

  it('ends with the same critic after it was killed in the middle of its updates', async () => {
    const returns = batch.mask.map((bit, i) => bit * (batch.tokens[i]! % 2));
    const given = withStreams(batch, { returns, values: batch.mask.map(() => 0) });
    const { optimizer } = plan;
    const alone = settings(null, { critic: { clip: 0.2, optimizer } });
    const criticOf = ({ critic }: TrainState) =>
      Buffer.concat([critic!.weights, critic!.firstMoments, critic!.secondMoments].map(bytes));
    const learner = await sharedLearner();
    const first = await learner.step(freshState(), given, alone);
    const expected = await learner.step(first.state, given, alone);
    const killed = learner.pid!;
    const many = { ...given, updates: endless.updates };
    const dying = learner.step(first.state, many, alone, undefined, (done) => {
      if (done === 3) process.kill(killed, 'SIGKILL');
    });
    await expect(dying).rejects.toMatchObject({ type: 'process-died' });
    const again = await learner.step(first.state, given, alone);
    expect(learner.pid).not.toBe(killed);
    expect(criticOf(again.state).equals(criticOf(expected.state))).toBe(true);
  });

  it('sends what a scoring reads once, and scores as often as it is asked', async () => {
    const learner = await sharedLearner();
    const what = { logprobs: { temperature: 1, topK: 0 }, values: true };
    const { state } = await learner.step(freshState(), batch, plan, { reference });
    const own = await learner.score(state, batch, what);
    expect(await learner.score(structuredClone(state), batch, what)).toEqual(own);
    const ofReference = await learner.score({ config: TINY, weights: reference }, batch, what);
    expect(ofReference.logprobs).not.toEqual(own.logprobs);
    const there = await learner.step(state, batch, plan, { reference });
    const other = await sharedLearner('other');
    const here = await other.step(structuredClone(state), batch, plan, { reference });
    expect(digest(there.state)).toBe(digest(here.state));
  });

  it.runIf(process.platform === 'linux')(
    'holds an adapter’s base once, and the worker that sends it needs no second copy',
    async () => {
      const config = { ...TINY, hiddenSize: 2048, intermediateSize: 4096 };
      const base = freshState(config, initialWeights(config, 1));
      const lora = { rank: 2, alpha: 4, rsLora: false, targetModules: ['q_proj' as const] };
      const state = { ...base, adapter: { lora, weights: initialAdapter(config, lora, 1) } };
      const megabytes =
        [...base.weights.values()].reduce((sum, { data }) => sum + data.byteLength, 0) / 2 ** 20;
      const learner = await start();
      const [idle, ownBefore] = [peak(learner.pid!), process.memoryUsage().rss / 2 ** 20];
      await learner.step(state, randomBatch(2, TINY), settings(GRPO));
      expect(peak(learner.pid!) - idle).toBeLessThan(2 * megabytes);
      expect(process.memoryUsage().rss / 2 ** 20 - ownBefore).toBeLessThan(0.8 * megabytes);
    },
  );

  it('stops a step that is under way when it is closed', async () => {
    const learner = await start();
    let resolve: () => void = () => undefined;
    const begun = new Promise<void>((done) => (resolve = done));
    const step = learner.step(freshState(), endless, settings(GRPO), undefined, () => resolve());
    const stopped = expect(step).rejects.toMatchObject({ type: 'closed' });
    await begun;
    await learner.close();
    await stopped;
    await expect(learner.step(freshState(), batch, plan, { reference })).rejects.toMatchObject({
      type: 'closed',
    });
  });

  it('leaves this event loop free, ends a step that is called off with the reason, and the next step is right', async () => {
    const learner = await sharedLearner();
    const expected = await learner.step(freshState(), batch, plan, { reference });
    const controller = new AbortController();
    const reason = new Error('nobody wants it any more');
    // By a timer of this loop, when it has turned often while the step was under way.
    let [hasBegun, turns] = [false, 0];
    const timer = setInterval(() => {
      if (hasBegun && ++turns > 20) controller.abort(reason);
    }, 1);
    const step = learner.step(
      freshState(),
      endless,
      settings(GRPO),
      undefined,
      () => (hasBegun = true),
      controller.signal,
    );
    await expect(step).rejects.toBe(reason);
    clearInterval(timer);
    const again = await learner.step(freshState(), batch, plan, { reference });
    expect(digest(again.state)).toBe(digest(expected.state));
  });

  it('brings errors of the step across, and goes on', async () => {
    const learner = await sharedLearner();
    const bad = { ...batch, tokens: batch.tokens.map(() => 99) };
    const failed = learner.step(freshState(), bad, plan, { reference });
    await expect(failed).rejects.toMatchObject({ name: 'GradusError', boundary: 'learner', type: 'batch' });
    const { state } = await learner.step(freshState(), batch, plan, { reference });
    expect(state.updates).toBe(6);
  });

  it('sends a reference again that a step before could not be sent with', async () => {
    const learner = await sharedLearner();
    const unsendable = { ...batch, sequences: { late: new Int16Array(40) as unknown as Float32Array } };
    await expect(learner.step(freshState(), unsendable, plan, { reference })).rejects.toThrow('Int16Array');
    const { state } = await learner.step(freshState(), batch, plan, { reference });
    expect(state.updates).toBe(6);
  });

  it('computes the same on WebAssembly, eagerly', async () => {
    const [native, wasm] = await Promise.all([sharedLearner(), start({ backend: 'wasm' })]);
    expect(wasm.backend).toContain('wasm');
    const once = inUpdates(batch, { minibatch: 20 });
    const a = await native.step(freshState(), once, plan, { reference });
    const b = await wasm.step(freshState(), once, plan, { reference });
    expect(b.metrics.loss).toBeCloseTo(a.metrics.loss!, 4);
    expect(b.metrics.gradientNorm).toBeCloseTo(a.metrics.gradientNorm!, 4);
    expect(b.metrics.entropy).toBeCloseTo(a.metrics.entropy!, 4);
    expect(largestDifference(a.state.firstMoments, b.state.firstMoments)).toBeLessThan(1e-4);
  });

  it.runIf(process.platform === 'linux')(
    'ends at once with a parent that is killed, whatever its kernels are at',
    async () => {
      const script = fileURLToPath(new URL('../../../../support/learner-owner.ts', import.meta.url));
      const owner = fork(script, [], { execArgv: ['--import', 'tsx'] });
      onTestFinished(() => void owner.kill('SIGKILL'));
      const [pid] = (await once(owner, 'message')) as [number];
      /** Processor seconds so far, of a clock of a hundred ticks a second. */
      const worked = () => {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
        return (Number(fields[11]) + Number(fields[12])) / 100;
      };
      const before = worked();
      await expect.poll(() => worked() - before, { timeout: 120_000, interval: 20 }).toBeGreaterThan(3);
      const atItsEnd = worked();
      owner.kill('SIGKILL');
      // Its step would go on for more than half a minute of processor time.
      const workedOn = () => (existsSync(`/proc/${pid}`) ? worked() - atItsEnd : null);
      await expect.poll(workedOn, { timeout: 120_000 }).toBeNull();
    },
  );
});
