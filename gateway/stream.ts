import type { Api, Frame, Told } from './api/contract.ts';
import { problemOf } from './problem.ts';

const textOf = ({ event, data }: Frame): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

/**
 * An answer as server-sent events: something to keep the connection alive while the turn is sampled, and then all of the
 * turn. Tokens are not passed on as they come: a request that is sent again could not be told the same.
 */
export function streamOf(
  api: Api,
  toTell: Promise<Told>,
  { first, keepAliveMs }: { first: string; keepAliveMs: number },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let keeping: NodeJS.Timeout | undefined;
  let isGone = false;
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      if (first !== '') controller.enqueue(encoder.encode(first));
      keeping = setInterval(() => controller.enqueue(encoder.encode(api.keepAlive)), keepAliveMs);
      try {
        const told = await toTell;
        if (isGone) return;
        for (const frame of api.frames(told)) controller.enqueue(encoder.encode(textOf(frame)));
      } catch (error) {
        if (isGone) return;
        const frame: Frame = { event: 'error', data: api.problem(problemOf(error)) };
        controller.enqueue(encoder.encode(textOf(frame)));
      } finally {
        clearInterval(keeping);
      }
      controller.close();
    },
    cancel() {
      isGone = true;
      clearInterval(keeping);
    },
  });
}
