// A process of its own, to be killed while it uploads: node --import tsx save-checkpoint.ts STORE-OPTIONS-AS-JSON STEP RUN MAX-SHARD-BYTES
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import type { ObjectStoreOptions } from '../../../store/objects/object-store.ts';
import { checkpointAt, largerConfig } from '../../support/store/fixtures.ts';

const [options, step, run, maxShardBytes] = process.argv.slice(2);
const store = await ObjectStore.connect(JSON.parse(options!) as ObjectStoreOptions);
await saveCheckpoint(store, {
  ...checkpointAt(Number(step), largerConfig, run),
  maxShardBytes: Number(maxShardBytes),
});
