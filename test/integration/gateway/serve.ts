import { serveGateway } from '../../../gateway/server.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { ObjectStoreOptions } from '../../../store/objects/object-store.ts';
import { episodeOptions, randomPolicy } from '../../support/gateway.ts';

// A gateway in a process that can be killed: its port, the episode's id, and the store's options as JSON.

const [port, id, options] = process.argv.slice(2) as [string, string, string];
const store = await ObjectStore.connect(JSON.parse(options) as ObjectStoreOptions);
const gateway = await serveGateway({ port: Number(port) });
await gateway.open(episodeOptions(await randomPolicy(), store, id));
process.stdout.write('ready\n');
