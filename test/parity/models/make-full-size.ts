// A folder as a user would bring it: Qwen2.5-0.5B's shape with random weights in bfloat16 (1 GB), a tokenizer of its real
// size and a chat template of its kind. No Python, and little memory: tensors are written one by one.
// Run: npx tsx test/parity/models/make-full-size.ts FOLDER [--layers N] [--hidden-size N], a multiple of 64
import { mkdir, open, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fromHfConfig } from '../../../engine/hf-config.ts';
import { weightShapes } from '../../../core/model/config.ts';
import { templateOf } from '../../unit/engine/dialect/fixtures.ts';
import { FULL_SIZES, fullSizeJson } from '../../unit/engine/tokenizer/full-size.ts';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    layers: { type: 'string', default: '24' },
    'hidden-size': { type: 'string', default: '896' },
  },
});
const [folder] = positionals;
if (folder === undefined) throw new Error('say which folder: make-full-size.ts FOLDER');

const hiddenSize = Number(values['hidden-size']);
const heads = hiddenSize / 64;
const config = {
  architectures: ['Qwen2ForCausalLM'],
  model_type: 'qwen2',
  vocab_size: FULL_SIZES['qwen2.5'].rows,
  hidden_size: hiddenSize,
  intermediate_size: 16 * Math.round((hiddenSize * 4864) / 896 / 16),
  num_hidden_layers: Number(values.layers),
  num_attention_heads: heads,
  num_key_value_heads: heads % 2 === 0 ? 2 : 1,
  max_position_embeddings: 32_768,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  tie_word_embeddings: true,
  hidden_act: 'silu',
  torch_dtype: 'bfloat16',
};

await mkdir(folder, { recursive: true });
const json = (name: string, content: object) =>
  writeFile(path.join(folder, name), `${JSON.stringify(content, null, 2)}\n`);
await json('config.json', config);
await json('generation_config.json', { eos_token_id: [151_645, 151_643] });
await json('tokenizer_config.json', { chat_template: templateOf('qwen2.5-like'), eos_token: '<|im_end|>' });
await writeFile(path.join(folder, 'tokenizer.json'), fullSizeJson('qwen2.5'));

const shapes = weightShapes(fromHfConfig(config));
const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
let at = 0;
const header = Object.fromEntries(
  shapes.map(([name, shape]) => {
    const begin = at;
    at += 2 * sizeOf(shape);
    return [name, { dtype: 'BF16', shape, data_offsets: [begin, at] }];
  }),
);
const text = Buffer.from(JSON.stringify(header));
const length = Buffer.alloc(8);
length.writeBigUInt64LE(BigInt(text.length));
const file = await open(path.join(folder, 'model.safetensors'), 'w');
await file.write(Buffer.concat([length, text]));
const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);
let state = 1;
for (const [, shape] of shapes) {
  const halves = new Uint16Array(sizeOf(shape));
  // As wide as a fresh layer is; gains and biases near 1 and 0.
  const width = shape.length > 1 ? 2 * Math.sqrt(3 / shape[1]!) : 0.1;
  const middle = shape.length === 1 && shape[0] === config.hidden_size ? 1 : 0;
  for (let i = 0; i < halves.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    float[0] = middle + width * (state / 2 ** 32 - 0.5);
    halves[i] = word[0]! >>> 16;
  }
  await file.write(new Uint8Array(halves.buffer));
}
await file.close();
console.log(`${folder}: ${(at / 2e6).toFixed(0)} M parameters, ${(at / 1e9).toFixed(2)} GB`);
