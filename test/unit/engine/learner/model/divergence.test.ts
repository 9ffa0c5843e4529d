import type { Tensor2D } from '@tensorflow/tfjs';
import { expect, it } from 'vitest';
import { normal, randomKey } from '../../../../../core/random.ts';
import { divergenceFrom, mergedTeachers, mixtureOf } from '../../../../../engine/learner/model/divergence.ts';
import { loadTensorflowBackend } from '../../../../../engine/learner/tensorflow/backend.ts';

const backend = await loadTensorflowBackend('cpu');
const { tf } = backend;
const VOCABULARY = 40;

const logitsOf = (who: string, scale: number): number[] =>
  Array.from({ length: VOCABULARY }, (_, i) => Math.fround(scale * normal(randomKey('divergence', who), i)));

const logSoftmax = (logits: readonly number[]): number[] => {
  const most = Math.max(...logits);
  const total = Math.log(logits.reduce((sum, z) => sum + Math.exp(z - most), 0));
  return logits.map((z) => z - most - total);
};
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** In doubles, by GKD's eq. 1: β KL(p ‖ m) + (1 − β) KL(q ‖ m), and its slope by the student's logits. */
function exact(student: readonly number[], teacher: readonly number[], beta: number) {
  const [logq, logp] = [logSoftmax(student), logSoftmax(teacher)];
  // log m/q and log m/p, each by what is small in it.
  const fromStudent = logq.map((q, i) => Math.log1p(beta * Math.expm1(logp[i]! - q)));
  const fromTeacher = logp.map((p, i) => Math.log1p((1 - beta) * Math.expm1(logq[i]! - p)));
  const ofStudent = sum(logq.map((q, i) => -Math.exp(q) * fromStudent[i]!));
  return {
    value: beta * sum(logp.map((p, i) => -Math.exp(p) * fromTeacher[i]!)) + (1 - beta) * ofStudent,
    slope: logq.map((q, i) => (1 - beta) * Math.exp(q) * (-fromStudent[i]! - ofStudent)),
  };
}

function computed(student: readonly number[], teacher: readonly number[], beta: number) {
  const head = tf.eye(VOCABULARY);
  const { value, grad } = tf.valueAndGrad((hidden) => {
    const { divergence, logprobs, entropy } = divergenceFrom(
      backend,
      tf.logSoftmax(tf.tensor2d([[...teacher]])),
      { hidden: hidden as Tensor2D, head, frozen: true },
      tf.tensor1d([0], 'int32'),
      { kind: 'jsd', beta },
    );
    tf.dispose([logprobs, entropy]);
    return tf.sum(divergence);
  })(tf.tensor2d([[...student]]));
  return { value: value.dataSync()[0]!, slope: [...grad.dataSync()] };
}

it.each([
  { beta: 1e-7, scale: 1 },
  { beta: 1e-4, scale: 1 },
  { beta: 1e-4, scale: 5 },
  { beta: 0.5, scale: 5 },
  { beta: 0.999, scale: 1 },
])('has the slope of the Jensen–Shannon divergence with β $beta at logits of $scale', ({ beta, scale }) => {
  const [student, teacher] = [logitsOf('student', scale), logitsOf('teacher', scale)];
  const { value, slope } = exact(student, teacher, beta);
  const found = computed(student, teacher, beta);
  const largest = Math.max(...slope.map(Math.abs));
  const off = slope.map((one, i) => Math.abs(one - found.slope[i]!) / largest);
  expect(Math.max(...off)).toBeLessThan(1e-4);
  expect(Math.abs(found.value - value) / value).toBeLessThan(1e-3);
});

it('is the weighted sum of the divergences from each teacher, which a mixture is not', () => {
  const student = logitsOf('student', 1);
  const shares = [0.25, 0.75];
  const teachers = ['one', 'other'].map((name) => logitsOf(name, 1));
  const q = logSoftmax(student).map(Math.exp);
  const kl = (teacher: readonly number[]) => {
    const logp = logSoftmax(teacher);
    return q.reduce((sum, one, i) => sum + one * (Math.log(one) - logp[i]!), 0);
  };
  const found = (kind: 'reverse-kl' | 'reverse-kl-each') => {
    const given = teachers.map((teacher, i) => ({
      logprobs: tf.tensor2d([logSoftmax(teacher)]),
      share: tf.tensor1d([shares[i]!]),
    }));
    const taught = mergedTeachers(backend, given, { kind });
    const asked = { hidden: tf.tensor2d([student]), head: tf.eye(student.length), frozen: true };
    return divergenceFrom(backend, taught, asked, tf.tensor1d([0], 'int32'), {
      kind,
    }).divergence.dataSync()[0]!;
  };
  const sum = shares.reduce((total, share, i) => total + share * kl(teachers[i]!), 0);
  expect(found('reverse-kl-each')).toBeCloseTo(sum, 5);
  // Jensen: the mixture is nearer than its teachers are on average.
  expect(found('reverse-kl')).toBeLessThan(sum - 0.01);
});

it('follows the only teacher of a token, whatever others hold for likely', () => {
  const own = logSoftmax([0, -200, -3]);
  const other = logSoftmax([-300, 0, -300]);
  const merged = mixtureOf(backend, [
    { logprobs: tf.tensor2d([own]), share: tf.tensor1d([1]) },
    { logprobs: tf.tensor2d([other]), share: tf.tensor1d([0]) },
  ]);
  expect([...merged.dataSync()]).toEqual(own.map((one) => expect.closeTo(one, 4)));
});
