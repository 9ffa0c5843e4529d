import type { FloatDtype } from './safetensors/dtypes.ts';

const NAMES: Record<FloatDtype, string> = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' };

/** A `config.json` that says how the weights beside it are stored: `dtype` for transformers 5, `torch_dtype` for 4. */
export function withDtype(configJson: Uint8Array, dtype: FloatDtype): Uint8Array {
  const config = JSON.parse(new TextDecoder().decode(configJson)) as Record<string, unknown>;
  const fields = ['dtype', 'torch_dtype'].filter((field) => field in config);
  for (const field of fields.length === 0 ? ['dtype'] : fields) config[field] = NAMES[dtype];
  return new TextEncoder().encode(`${JSON.stringify(config, null, 2)}\n`);
}
