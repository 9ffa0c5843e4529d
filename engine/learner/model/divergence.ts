import type { Rank, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Divergence } from '../../../core/algorithms/objective.ts';
import { MASKED } from '../../token-mask.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';
import { product } from './linear.ts';
import { oneHot } from './one-hot.ts';

interface Student {
  hidden: Tensor2D;
  head: Tensor2D;
  /** Added to the logits [V]. */
  mask?: Float32Array | undefined;
  /** The head has no gradient. */
  frozen: boolean;
}

/**
 * The divergence [N] of the student q = softmax(hidden headᵀ), hidden [N, d] and head [V, d], from the teacher, whose
 * log-probs are [N, V]; with log q of `targets` [N] and the entropy of q [N], which have no gradient. By the logits z of the student
 * - reverse KL(q ‖ p), and the sum of such to each teacher, where log p is Σ ω log p_teacher: q (log q − log p − D),
 * - forward KL(p ‖ q): q − p,
 * - JSD, m = β p + (1 − β) q: (1 − β) q (log q/m − KL(q ‖ m)).
 *
 * Of what is [N, V] only this slope is kept for the gradient, and the student's half of that is a product [N, d]; all else
 * is let go of as soon as it has been read, for with a large vocabulary each such matrix is half a gigabyte.
 */
export function divergenceFrom(
  backend: TensorflowBackend,
  teacher: Tensor2D,
  { hidden, head, mask, frozen }: Student,
  targets: Tensor1D,
  divergence: Divergence,
): { divergence: Tensor1D; logprobs: Tensor1D; entropy: Tensor1D } {
  const { tf } = backend;
  let facts: { logprobs: Tensor1D; entropy: Tensor1D } | undefined;
  const forward = (hidden: Tensor2D, head: Tensor2D) => {
    const logq = tf.tidy(() => {
      const unmasked = product(backend, hidden, head, false, true, true);
      return tf.logSoftmax(mask === undefined ? unmasked : tf.add<Tensor2D>(unmasked, tf.tensor1d(mask)));
    });
    const q = tf.exp(logq);
    const { value, slope } = tf.tidy(() => valueAndSlope(backend, { q, logq }, teacher, divergence));
    facts = {
      logprobs: tf.keep(tf.tidy(() => tf.sum(tf.mul(oneHot(tf, targets, head.shape[0]), logq), -1))),
      entropy: tf.keep(tf.tidy(() => tf.neg(tf.sum(tf.mul(q, logq), -1)))),
    };
    return { value, slope, pull: product(backend, slope, head, false, false) };
  };
  const value = frozen
    ? customGradient<[Tensor2D], [Tensor2D], Tensor1D>(
        tf,
        (hidden) => {
          const { value, pull } = forward(hidden, head);
          return { value, saved: [pull] };
        },
        (dy, pull) => [tf.mul(pull, tf.expandDims(dy, 1))],
      )(hidden)
    : customGradient<[Tensor2D, Tensor2D], [Tensor2D, Tensor2D, Tensor2D], Tensor1D>(
        tf,
        (hidden, head) => {
          const { value, slope, pull } = forward(hidden, head);
          return { value, saved: [hidden, slope, pull] };
        },
        (dy, hidden, slope, pull) => {
          const scale = tf.expandDims<Tensor2D>(dy, 1);
          return [tf.mul(pull, scale), product(backend, slope, tf.mul(hidden, scale), true, false)];
        },
      )(hidden, head);
  return { divergence: value, ...facts! };
}

/** D [N], and dD / dz [N, V]. What has no probability is finite in its logarithm, so that 0 · log 0 is 0. */
function valueAndSlope(
  { tf }: TensorflowBackend,
  { q, logq }: { q: Tensor2D; logq: Tensor2D },
  logp: Tensor2D,
  divergence: Divergence,
): { value: Tensor1D; slope: Tensor2D } {
  const expected = (p: Tensor2D, values: Tensor2D) =>
    tf.tidy(() => tf.sum<Tensor2D>(tf.mul(p, values), -1, true));
  if (divergence.kind === 'reverse-kl' || divergence.kind === 'reverse-kl-each') {
    const difference = tf.sub<Tensor2D>(logq, logp);
    const value = expected(q, difference);
    return { value: tf.squeeze(value, [1]), slope: tf.mul(q, tf.sub(difference, value)) };
  }
  const p = tf.exp(logp);
  if (divergence.kind === 'forward-kl') {
    const value = expected(p, tf.sub(logp, logq));
    return { value: tf.squeeze(value, [1]), slope: tf.sub(q, p) };
  }
  const { beta } = divergence;
  // log m/q = log(1 − β) + log(1 + β/(1 − β) · p/q): as a difference of logarithms it would be rounding where β is small.
  const aboveStudent = tf.sub<Tensor2D>(logp, logq);
  const ofStudent = tf.tidy(() => {
    const odds = tf.add<Tensor2D>(aboveStudent, Math.log(beta) - Math.log1p(-beta));
    const softplus = tf.add<Tensor2D>(tf.relu(odds), tf.log1p(tf.exp(tf.neg(tf.abs(odds)))));
    return tf.neg<Tensor2D>(tf.add(softplus, Math.log1p(-beta)));
  });
  const student = expected(q, ofStudent);
  const ofTeacher = expected(p, tf.add(aboveStudent, ofStudent));
  return {
    value: tf.squeeze(tf.add(tf.mul(ofTeacher, beta), tf.mul(student, 1 - beta)), [1]),
    slope: tf.mul(tf.mul(q, 1 - beta), tf.sub(ofStudent, student)),
  };
}

/** What the student follows at each token: log-probs of the teachers' mixture, or their own, by weight. */
export const mergedTeachers = (
  backend: TensorflowBackend,
  teachers: readonly SharedTeacher[],
  { kind }: Divergence,
): Tensor2D => (kind === 'reverse-kl-each' ? meanLogprobs(backend, teachers) : mixtureOf(backend, teachers));

/** Log-probs [N, V] of a teacher and its share ω [N]; the shares of a token sum to 1. */
interface SharedTeacher {
  logprobs: Tensor2D;
  share: Tensor1D;
}

/** Σ ω log p [N, V], for Σ ω KL(q ‖ p) = Σ q (log q − Σ ω log p): no distribution, unless all teachers are alike. */
const meanLogprobs = ({ tf }: TensorflowBackend, teachers: readonly SharedTeacher[]): Tensor2D =>
  teachers
    .map(({ logprobs, share }) => tf.mul<Tensor2D>(logprobs, tf.expandDims(share, 1)))
    .reduce((sum, next) => tf.add(sum, next));

/**
 * log Σ ω p [N, V] of teachers; one alone has all of it.
 */
export function mixtureOf({ tf }: TensorflowBackend, teachers: readonly SharedTeacher[]): Tensor2D {
  if (teachers.length === 1) return teachers[0]!.logprobs;
  const weighted = teachers.map(({ logprobs, share }) => {
    const has = tf.greater(share, 0);
    // The logarithm of no share at all is lower than that of any probability that the only teacher of a token may give.
    const logShare = tf.where<Tensor1D>(
      has,
      tf.log(tf.where<Tensor1D>(has, share, tf.onesLike(share))),
      tf.fill<Rank.R1>(share.shape, MASKED),
    );
    return tf.add<Tensor2D>(logprobs, tf.expandDims(logShare, 1));
  });
  return weighted.reduce((sum, next) => {
    const most = tf.maximum<Tensor2D>(sum, next);
    return tf.add(most, tf.log1p(tf.exp(tf.neg(tf.abs(tf.sub(sum, next))))));
  });
}
