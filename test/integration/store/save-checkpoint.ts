// A process of its own, to be killed while it uploads: node --import tsx save-checkpoint.ts PORT STEP
import { saveCheckpoint } from '../../../activities/store/checkpoints.ts';
import { ObjectStore } from '../../../activities/store/object-store.ts';
import { checkpointAt, largerConfig } from './fixtures.ts';

const [port, secretKey, bucket, step] = process.argv.slice(2);
const store = await ObjectStore.connect({
  endPoint: '127.0.0.1',
  port: Number(port),
  useSSL: false,
  accessKey: 'test',
  secretKey: secretKey!,
  bucket: bucket!,
});
await saveCheckpoint(store, checkpointAt(Number(step), largerConfig));
