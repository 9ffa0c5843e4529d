import type { MiddlewareHandler } from 'hono';
import { Problem } from './problem.ts';

const MIB = 2 ** 20;
/** Bodies that are known to be smaller are not counted. */
const SMALL = 2 ** 16;

/**
 * Bounds the bodies of requests, each and those together that are not answered yet: half of a request may stay as long as its
 * client does. Bytes. Throws the Problem, whatever a handler makes of a body that ends with it.
 */
export function bodyLimit({ each = 32 * MIB, together = 128 * MIB } = {}): MiddlewareHandler {
  let underWay = 0;
  const tooLarge = () =>
    new Problem(413, 'request_too_large', `A request may have ${each / MIB} MiB at most`);
  const tooMuch = () =>
    new Problem(
      429,
      'too_much_at_once',
      `The bodies of requests may have ${together / MIB} MiB together: wait for answers before you send more`,
    );
  return async (c, next) => {
    const declared = c.req.header('content-length');
    if (Number(declared ?? 0) > each) throw tooLarge();
    const { body } = c.req.raw;
    if (!body || (declared !== undefined && Number(declared) <= SMALL)) return next();
    let size = 0;
    let answered = false;
    let refused: Problem | undefined;
    const counted = body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          if (answered) return;
          size += chunk.length;
          underWay += chunk.length;
          if (size > each) refused = tooLarge();
          else if (underWay > together) refused = tooMuch();
          if (refused) controller.error(refused);
          else controller.enqueue(chunk);
        },
      }),
    );
    c.req.raw = new Request(c.req.raw, { method: c.req.method, body: counted, duplex: 'half' });
    try {
      await next();
    } finally {
      answered = true;
      underWay -= size;
    }
    if (refused) throw refused;
  };
}
