import { runAgent } from '../../../gateway/run-agent.ts';
import { serveGateway } from '../../../gateway/server.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { ObjectStoreOptions } from '../../../store/objects/object-store.ts';
import { episodeOptions } from '../../support/gateway.ts';
import { ScriptedPolicy } from '../../support/scripted-policy.ts';

// Runs one agent in the sandbox until somebody kills this process. Arguments: the store's options as JSON, the agent's folder,
// and its command.

const [options, folder, ...argv] = process.argv.slice(2) as [string, string, string, ...string[]];
const store = await ObjectStore.connect(JSON.parse(options) as ObjectStoreOptions);
const gateway = await serveGateway();
const episode = await gateway.open(episodeOptions(new ScriptedPolicy([]), store, 'killed'));
await runAgent(gateway, episode, {
  argv,
  task: 'none',
  timeoutSeconds: 600,
  sandbox: { folder, read: [], memoryMiB: 256, processes: 32, writableMiB: 16 },
  signal: new AbortController().signal,
});
