import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { randomKey } from '../../../core/random.ts';
import type { Policy } from '../../../engine/policy.ts';
import { runAgent } from '../../../gateway/run-agent.ts';
import { serveGateway } from '../../../gateway/server.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { ObjectStoreOptions } from '../../../store/objects/object-store.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { episodeOptions, randomPolicy } from '../../support/gateway.ts';

// One episode of the agent of calculator-agent.ts. Arguments: a file for the result, the episode's folder, after how many
// turns this process is killed (0: not at all), and the store's options as JSON.

const [file, folder, killAfter, options] = process.argv.slice(2) as [string, string, string, string];
const store = await ObjectStore.connect(JSON.parse(options) as ObjectStoreOptions);
const random = await randomPolicy();
let sampled = 0;
const policy: Policy = {
  sample(request, signal) {
    if (sampled++ === Number(killAfter) && killAfter !== '0') process.kill(process.pid, 'SIGKILL');
    return random.sample(request, signal);
  },
  release: (session) => random.release(session),
  close: () => random.close(),
};
const gateway = await serveGateway();
const more = { folder, startsOver: true, key: randomKey('agent') };
const episode = await gateway.open(episodeOptions(policy, store, 'agent', more));
const ref = { environment: 'calculator', split: 'train', level: 1, index: 0 } as const;
const { prompt } = calculatorEnvironment().task(ref);
const agent = fileURLToPath(new URL('calculator-agent.ts', import.meta.url));
const run = await runAgent(gateway, episode, {
  argv: ['/bin/sh', '-c', '"$NODE" --import "$TSX" "$AGENT" "$GRADUS_TASK" > "$GRADUS_ANSWER"'],
  task: prompt,
  timeoutSeconds: 200,
  variables: { NODE: process.execPath, TSX: import.meta.resolve('tsx'), AGENT: agent },
  signal: new AbortController().signal,
});
await writeFile(file, JSON.stringify({ run, sampled }));
await gateway.close();
await policy.close();
store.close();
