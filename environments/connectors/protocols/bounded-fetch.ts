import { createParser } from 'eventsource-parser';
import type { GradusError } from '../../../core/errors.ts';
import { LONGEST_RESPONSE, tooLong } from './server.ts';

/**
 * `fetch` for libraries that read whatever comes. A body of more than `LONGEST_RESPONSE` bytes, or in a stream an event of
 * more, ends in GradusError('environment', 'server-answer'), which `onTooLong` gets as well: libraries may try again. A
 * stream as a whole may last for ever.
 */
export const boundedFetch =
  (onTooLong: (error: GradusError) => void) =>
  async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const response = await fetch(url, init);
    if (response.body === null) return response;
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
    const isTooLong = isStream ? longEvents() : longBodies();
    const bounded = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        if (!isTooLong(chunk)) return controller.enqueue(chunk);
        const error = tooLong(String(url));
        controller.error(error);
        onTooLong(error);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(bounded), { status, statusText, headers });
  };

type IsTooLong = (chunk: Uint8Array) => boolean;

function longBodies(): IsTooLong {
  let bytes = 0;
  return (chunk) => (bytes += chunk.length) > LONGEST_RESPONSE;
}

/** What is parsed here is parsed again by the library: which bytes belong to one event, only a parser knows. */
function longEvents(): IsTooLong {
  let long = false;
  const text = new TextDecoder();
  const parser = createParser({
    maxBufferSize: LONGEST_RESPONSE,
    onError: ({ type }) => (long ||= type === 'max-buffer-size-exceeded'),
  });
  return (chunk) => {
    if (!long) parser.feed(text.decode(chunk, { stream: true }));
    return long;
  };
}
