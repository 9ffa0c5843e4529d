import { defaultPayloadConverter } from '@temporalio/common';
import type { Payload, PayloadConverter, SerializationContext } from '@temporalio/common';

/** What cannot be read, of no shape. It cannot be written either, so that it goes nowhere unseen. */
const UNREADABLE = Symbol('an unreadable payload');

/**
 * The default one, except that a payload which cannot be read becomes `UNREADABLE`. The SDK reads a signal's payloads
 * before the handler sees them, and an error there would hold up the workflow for ever.
 */
export const payloadConverter: PayloadConverter = {
  toPayload: (value, context) => defaultPayloadConverter.toPayload(value, context),
  // The interface says that it gives whatever its caller wants.
  fromPayload: readable as PayloadConverter['fromPayload'],
};

function readable(payload: Payload, context?: SerializationContext): unknown {
  try {
    return defaultPayloadConverter.fromPayload(payload, context);
  } catch {
    return UNREADABLE;
  }
}
