import type { Tensor1D } from '@tensorflow/tfjs';

/**
 * N positions shown at B · T places, several of which may show one: the position of each place [B · T], and one of the
 * places of each position [N]; int32.
 */
export interface SharedPositions {
  positionOf: Tensor1D;
  placeOf: Tensor1D;
}
