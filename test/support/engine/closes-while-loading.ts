import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { randomWeights, smallConfig } from './random-model.ts';

// A decoder is closed while its threads answer a load. Nothing but the decoder keeps this process.

const weights = randomWeights(smallConfig);
for (let turns = 0; turns < 4; turns++) {
  const decoder = createDecoder();
  await decoder.load('a', smallConfig, weights);
  const loaded = decoder.load('b', smallConfig, weights).then(
    () => 'loaded',
    () => 'refused',
  );
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
  await decoder.close();
  await loaded;
}
console.log('closed');
