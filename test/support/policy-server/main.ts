// A server of ours that speaks vLLM's or SGLang's HTTP over our own decoder, for tests of what talks to such servers.
// Run: tsx test/support/policy-server/main.ts --dialect vllm --model FOLDER [--port 0] …
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { Faults } from './faults.ts';
import type { Fault } from './faults.ts';
import { PolicyEngine } from './policy-engine.ts';
import { serve } from './serve.ts';
import { sglangDialect } from './sglang.ts';
import { vllmDialect } from './vllm.ts';

const { values } = parseArgs({
  options: {
    dialect: { type: 'string' },
    model: { type: 'string' },
    port: { type: 'string', default: '0' },
    'served-model-name': { type: 'string' },
    /** vLLM's: what its log-probabilities are of. */
    'logprobs-mode': { type: 'string', default: 'raw_logprobs' },
    /** vLLM's, from 0.33 on. */
    'weight-versions': { type: 'boolean', default: false },
    /** vLLM's `--enable-scale-out` is not given. */
    'no-scale-out': { type: 'boolean', default: false },
    'block-size': { type: 'string', default: '16' },
    /** JSON: faults that are on from the beginning. */
    faults: { type: 'string', default: '[]' },
  },
});
const dialect = z.enum(['vllm', 'sglang']).parse(values.dialect);
const model = z.string().parse(values.model);
const mode = z.enum(['raw_logprobs', 'processed_logprobs']).parse(values['logprobs-mode']);
const servedName = values['served-model-name'] ?? model;

const faults = new Faults();
for (const fault of JSON.parse(values.faults) as Fault[]) faults.set(fault);
const engine = await PolicyEngine.open(model, {
  mode: dialect === 'sglang' ? 'tempered' : mode === 'raw_logprobs' ? 'raw' : 'processed',
  blockSize: Number(values['block-size']),
  faults,
});
const weightVersions = values['weight-versions'];
const server = serve(
  dialect === 'vllm'
    ? vllmDialect(engine, faults, {
        servedName,
        weightVersions,
        scaleOut: !values['no-scale-out'],
        version: weightVersions ? '0.33.0' : '0.32.0',
      })
    : sglangDialect(engine, faults, { servedName, version: '0.5.23' }),
  faults,
  () => void stop(1),
);
server.listen(Number(values.port), '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
process.once('SIGTERM', () => void stop(0));

/** What was answered is sent; what was not is cut. */
async function stop(code: number): Promise<void> {
  server.close();
  server.closeIdleConnections();
  await new Promise((resolve) => setImmediate(resolve));
  server.closeAllConnections();
  await engine.close();
  process.exit(code);
}
