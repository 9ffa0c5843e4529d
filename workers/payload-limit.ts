import type { Payload, PayloadCodec } from '@temporalio/common';
import { GradusError } from '../core/errors.ts';

/**
 * Refuses payloads above a number of bytes: Temporal carries references and small facts, the object store carries the
 * rest. Tests run with it, so that a payload that grows is found before a history does.
 */
export class PayloadLimit implements PayloadCodec {
  private readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  async encode(payloads: Payload[]): Promise<Payload[]> {
    for (const payload of payloads) {
      const bytes = payload.data?.length ?? 0;
      if (bytes > this.limit) {
        throw new GradusError(
          'infra',
          'payload-too-large',
          `a payload of ${bytes} bytes is above the limit of ${this.limit}: put it into the object store and pass a BlobRef`,
        );
      }
    }
    return payloads;
  }

  async decode(payloads: Payload[]): Promise<Payload[]> {
    return payloads;
  }
}
