import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { gatherRows, rowsAt } from './rows-at.ts';

/** Rows of `table` [V, d] at `tokens` [N], int32: [N, d]. A `frozen` table has no gradient. */
export const embed = (
  backend: TensorflowBackend,
  table: Tensor2D,
  tokens: Tensor1D,
  frozen = false,
): Tensor2D => (frozen ? gatherRows : rowsAt)(backend, table, tokens);
