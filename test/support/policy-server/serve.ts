import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { FAULTS } from './faults.ts';
import type { Fault, FaultName, Faults } from './faults.ts';
import { bodyOf, callOf, EngineDead, ok, Refusal, send, sendCut } from './http.ts';
import type { Answer, Call, Dialect } from './http.ts';

const FAULT = z.object({
  name: z.enum(Object.keys(FAULTS) as [FaultName, ...FaultName[]]),
  times: z.int().min(1).optional(),
  seconds: z.number().optional(),
  version: z.string().optional(),
  tokens: z.int().optional(),
  ms: z.number().optional(),
});

/** A dialect over HTTP, with the routes that steer its faults and tell what was asked. `died` is called after the last answer. */
export function serve(dialect: Dialect, faults: Faults, died: () => void): Server {
  const requests: { method: string; path: string; body?: Json }[] = [];
  const control: Dialect['routes'] = {
    'POST /faults': (call) => {
      faults.set(bodyOf(FAULT, call, dialect.error) as Fault);
      return ok({});
    },
    'DELETE /faults': () => {
      faults.clear();
      return ok({});
    },
    'POST /faults/release': () => {
      faults.release();
      return ok({});
    },
    'GET /requests': () => ok(requests),
  };

  async function respond(call: Call, response: ServerResponse): Promise<void> {
    const name = `${call.method} ${call.path}`;
    const steering = control[name];
    if (steering) return send(response, await steering(call));
    requests.push({
      method: call.method,
      path: call.path,
      ...(call.body !== undefined && { body: call.body }),
    });
    const route = dialect.routes[name];
    if (!route) return send(response, dialect.error(404, 'Not Found'));
    if (!dialect.tokenPaths.includes(call.path)) return send(response, await answered(() => route(call)));

    const unavailable = faults.take('unavailable');
    if (unavailable) {
      const answer = dialect.error(503, 'Service Unavailable');
      return send(response, { ...answer, headers: { 'retry-after': String(unavailable.seconds ?? 1) } });
    }
    if (faults.take('queue-full')) return send(response, dialect.queueFull);
    if (faults.take('silent')) await faults.released();
    const answer = await answered(() => route(call));
    if (answer.status === 200 && faults.take('empty')) return send(response, ok());
    if (answer.status === 200 && faults.take('cut')) return sendCut(response, answer);
    return send(response, answer);
  }

  async function answered(route: () => Answer | Promise<Answer>): Promise<Answer> {
    try {
      return await route();
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      if (!(error instanceof EngineDead)) return dialect.error(500, messageOf(error));
      died();
      return dialect.error(500, error.message);
    }
  }

  return createServer((request, response) => {
    callOf(request)
      .then((call) => respond(call, response))
      .catch((error: unknown) => send(response, dialect.error(400, messageOf(error))));
  });
}
