import { GradusError } from '../../core/errors.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import type { LinearWithBias, ModelConfig } from '../../core/model/config.ts';
import { rotaryTables } from '../rope.ts';
import { tokenMask } from '../token-mask.ts';
import { GraphBuilder } from './graph-builder.ts';
import { encodeModel, type OnnxModel } from './onnx-proto.ts';
import { packedMatrix, storedBytes } from './packed-matrix.ts';
import type { PackedMatrix } from './packed-matrix.ts';

/** The name under which a session is given the weights, in the order of `weightShapes`, end to end. */
export const WEIGHTS_FILE = 'weights';
/** The matrix whose rows are looked up; it is the head as well where they are tied. */
export const EMBEDDING = 'embed_tokens';

const int = (value: number) => ({ int: value });
const float = (value: number) => ({ float: value });

interface GraphOptions {
  lastRows?: boolean;
  lanes?: number;
  dtype?: RolloutDtype;
}

/**
 * The decoder as an ONNX graph, without the weights: they are external data in `WEIGHTS_FILE`, in Hugging Face's own
 * layout, so new weights need a new session but no new graph. B = batch, S = new tokens, P = rows of the past
 * buffers, T = max(P, total); other letters as in ModelConfig.
 *
 * Inputs: `input_ids` int32 [B, S]; `seqlens_k` int32 [B], each row's length with the new tokens, minus one;
 * `total_sequence_length` int32 [1], the greatest length; `row` int64 [B, K, 1], where each row's last token lies
 * in its buffer; `past.{layer}.{key|value}` float32 [B, K, P, D].
 * Outputs: `logits` float32 [B, V] of the last token; `present.{layer}.{key|value}` [B, K, T, D];
 * `last.{layer}.{key|value}` [B, K, D], the rows of the last token alone, so that a step of decoding hands out
 * these few rows and not the whole cache. Without `lastRows` there is neither `row` nor `last.*`: whoever can have
 * past and present in one memory needs them not.
 *
 * GroupQueryAttention takes several new tokens after a past of one sequence only. With `lanes` the graph is for pieces
 * of that many sequences, of any sizes: they lie end to end in `input_ids` [1, S], int64 `piece_sizes` [B] says how many
 * tokens of each and `last_index` [B] where its last one is, `total_sequence_length` is [B], and every sequence has caches
 * of its own, `past.{layer}.{key|value}.{lane}` [1, K, P, D] and `present` likewise. Attention alone is computed sequence
 * by sequence.
 *
 * With a `dtype` other than float32 the matrices are packed (native/packed.h), and operators of the native decoder read
 * them. All else, activations too, is float32 in any case.
 *
 * Llama (Touvron et al. 2023), Qwen2 and Qwen3 as Hugging Face computes them: RMSNorm, rotary embedding with rotated
 * halves, grouped-query attention (Ainslie et al. 2023), SwiGLU, biases and norms of heads where the model has them.
 * Throws `policy/unsupported-model`.
 */
export function decoderGraph(
  config: ModelConfig,
  { lastRows = true, lanes = 0, dtype = 'float32' }: GraphOptions = {},
): OnnxModel {
  assertServable(config);
  const { hiddenSize: d, intermediateSize: F, headSize: D, attentionHeads: H, keyValueHeads: K } = config;
  const epsilon = float(config.rmsNormEpsilon);
  const graph = new GraphBuilder();
  let offset = 0;
  // Called in the order of `weightShapes`, which is the order in the file.
  const weight = (name: string, shape: readonly number[]) => {
    const length = storedBytes(shape, dtype);
    const data = { file: WEIGHTS_FILE, offset, length };
    offset += length;
    if (dtype === 'float32' || shape.length === 1)
      return graph.initializer({ name, type: 'float32', shape, data });
    packed.set(name, packedMatrix(dtype, shape));
    return graph.initializer({ name, type: 'uint8', shape: [length], data });
  };
  const packed = new Map<string, PackedMatrix>();
  const attributes = ({ stored, out, in: inputs }: PackedMatrix) => ({
    stored: int(stored),
    out: int(out),
    in: int(inputs),
  });
  // [.., in] x [out, in] -> [.., out]
  const linear = (x: string, w: string, output = graph.fresh('linear')) => {
    const matrix = packed.get(w);
    return matrix
      ? graph.native('PackedMatMul', [x, w], attributes(matrix), output)
      : graph.microsoft('FusedMatMul', [x, w], [output], { transB: int(1) })[0]!;
  };
  const biased = (x: string, kind: LinearWithBias, name: string, size: number) =>
    config.biases?.includes(kind) ? graph.node('Add', [x, weight(`${name}.bias`, [size])]) : x;
  const rmsNorm = (x: string, scale: string) =>
    graph.node('SimplifiedLayerNormalization', [x, scale], { axis: int(-1), epsilon, stash_type: int(1) });
  const addThenNorm = (x: string, residual: string, scale: string): [normed: string, sum: string] => {
    const outputs = [graph.fresh('norm'), '', '', graph.fresh('residual')];
    graph.microsoft('SkipSimplifiedLayerNormalization', [x, residual, scale], outputs, { epsilon });
    return [outputs[0]!, outputs[3]!];
  };

  const ids = graph.input({ name: 'input_ids', type: 'int32', shape: [lanes > 0 ? 1 : 'B', 'S'] });
  const sizes = lanes > 0 ? graph.input({ name: 'piece_sizes', type: 'int64', shape: [lanes] }) : undefined;
  // What attention reads of all sequences at once, or lane by lane.
  const perLane = (x: string, parts: () => string, axis: number): string[] =>
    lanes === 0 ? [x] : graph.split(x, lanes, parts(), axis);
  const ones = () => graph.integers(Array.from({ length: lanes }, () => 1));
  const lengths = perLane(graph.input({ name: 'seqlens_k', type: 'int32', shape: [lanes || 'B'] }), ones, 0);
  const total = perLane(
    graph.input({ name: 'total_sequence_length', type: 'int32', shape: [lanes || 1] }),
    ones,
    0,
  );
  const row =
    lastRows && lanes === 0 ? graph.input({ name: 'row', type: 'int64', shape: ['B', K, 1] }) : undefined;
  const tables = rotaryTables(config, config.maxPositions);
  const cos = graph.floats('cos_cache', [config.maxPositions, D / 2], tables.cos);
  const sin = graph.floats('sin_cache', [config.maxPositions, D / 2], tables.sin);

  const embedding = weight(EMBEDDING, [config.vocabSize, d]);
  const embedded = packed.get(embedding);
  let residual = embedded
    ? graph.native('PackedGather', [embedding, ids], attributes(embedded), graph.fresh('Gather'))
    : graph.node('Gather', [embedding, ids]);
  let branch: string | undefined;
  for (let layer = 0; layer < config.layers; layer++) {
    const named = (name: string) => `layer.${layer}.${name}`;
    const inputScale = weight(named('input_layernorm'), [d]);
    let x: string;
    if (branch === undefined) {
      x = rmsNorm(residual, inputScale);
    } else {
      [x, residual] = addThenNorm(branch, residual, inputScale);
    }
    // The q, k and v projections follow each other in the file: read as one matrix they make one product.
    const rows = (H + 2 * K) * D;
    const qkv = biased(linear(x, weight(named('qkv_proj'), [rows, d])), 'qkv', named('qkv_proj'), rows);
    const queryKeyValue = (config.queryKeyNorm ? normedHeads(qkv, named) : [qkv]).map((x) =>
      perLane(x, () => sizes!, 1),
    );
    const attended = lengths.map((_, lane) => attention(layer, lane, queryKeyValue));
    branch = linear(
      lanes > 0 ? graph.node('Concat', attended, { axis: int(1) }) : attended[0]!,
      weight(named('o_proj'), [d, H * D]),
    );
    branch = biased(branch, 'output', named('o_proj'), d);

    [x, residual] = addThenNorm(branch, residual, weight(named('post_attention_layernorm'), [d]));
    const gate = biased(linear(x, weight(named('gate_proj'), [F, d])), 'mlp', named('gate_proj'), F);
    const up = biased(linear(x, weight(named('up_proj'), [F, d])), 'mlp', named('up_proj'), F);
    const silu = graph.microsoft('QuickGelu', [gate], [graph.fresh('silu')], { alpha: float(1) })[0]!;
    branch = linear(graph.node('Mul', [silu, up]), weight(named('down_proj'), [d, F]));
    branch = biased(branch, 'mlp', named('down_proj'), d);
  }
  const [x] = addThenNorm(branch!, residual, weight('norm', [d]));
  const last = lanes > 0 ? lastOfPieces(x) : lastOfAll(x);
  const head = config.tieEmbeddings ? embedding : weight('lm_head', [config.vocabSize, d]);
  graph.output({ name: logits(last, head), type: 'float32', shape: ['B', config.vocabSize] });
  return graph.build();

  /** [B, d] by [V, d] -> [B, V] */
  function logits(x: string, head: string): string {
    const mask = tokenMask(config);
    if (mask === undefined) return linear(x, head, 'logits');
    const masked = graph.floats('token_mask', [config.vocabSize], mask);
    return graph.node('Add', [linear(x, head), masked], {}, 'logits');
  }

  /** [B, S, d] -> [B, d]: one index of rank 0 takes the sequence axis away. */
  function lastOfAll(x: string): string {
    const data = new Uint8Array(BigInt64Array.of(-1n).buffer);
    const index = graph.initializer({ name: 'last_index', type: 'int64', shape: [], data });
    return graph.node('Gather', [x, index], { axis: int(1) });
  }

  /** [1, S, d] -> [lanes, d] */
  function lastOfPieces(x: string): string {
    const index = graph.input({ name: 'last_index', type: 'int64', shape: [lanes] });
    const rows = graph.node('Gather', [x, index], { axis: int(1) });
    return graph.node('Reshape', [rows, graph.integers([lanes, d])]);
  }

  /** All sequences, or the one of a lane: [.., S, H · D]. */
  function attention(layer: number, lane: number, queryKeyValue: readonly string[][]): string {
    const result = graph.fresh('attention');
    const parts = ['key', 'value'].map((part) => `${layer}.${part}${lanes > 0 ? `.${lane}` : ''}`);
    const [rows, past, all] = lanes > 0 ? [1, `P${lane}`, `T${lane}`] : ['B', 'P', 'T'];
    const cache = (kind: string, length: string) =>
      parts.map(
        (part) => ({ name: `${kind}.${part}`, type: 'float32', shape: [rows, K, length, D] }) as const,
      );
    const present = cache('present', all).map((value) => graph.output(value));
    graph.microsoft(
      'GroupQueryAttention',
      [
        ...['', '', ''].map((none, i) => queryKeyValue[i]?.[lane] ?? none),
        ...cache('past', past).map((value) => graph.input(value)),
        lengths[lane]!,
        total[lane]!,
        cos,
        sin,
      ],
      [result, ...present],
      {
        num_heads: int(H),
        kv_num_heads: int(K),
        scale: float(1 / Math.sqrt(D)),
        do_rotary: int(1),
        rotary_interleaved: int(0),
      },
    );
    if (row === undefined) return result;
    for (const [i, part] of parts.entries()) {
      graph.output({ name: `last.${part}`, type: 'float32', shape: ['B', K, D] });
      graph.node('GatherND', [present[i]!, row], { batch_dims: int(2) }, `last.${part}`);
    }
    return result;
  }

  /** Query, key and value [B, S, heads · D], the first two normed head by head (Qwen3). */
  function normedHeads(qkv: string, named: (name: string) => string): string[] {
    const parts = graph.split(qkv, 3, graph.integers([H * D, K * D, K * D]), -1);
    const perHead = (x: string, count: number, norm: string) => {
      // 0 keeps an axis as it is.
      const heads = graph.node('Reshape', [x, graph.integers([0, 0, count, D])]);
      const normed = rmsNorm(heads, weight(named(norm), [D]));
      return graph.node('Reshape', [normed, graph.integers([0, 0, count * D])]);
    };
    return [perHead(parts[0]!, H, 'q_norm'), perHead(parts[1]!, K, 'k_norm'), parts[2]!];
  }
}

/** `decoderGraph` as ONNX bytes. */
export function buildDecoderGraph(...graph: Parameters<typeof decoderGraph>): Uint8Array {
  return encodeModel(decoderGraph(...graph));
}

/** Throws `policy/unsupported-model` when the graph cannot be built for this configuration. */
export function assertServable(config: ModelConfig): void {
  const refuse = (reason: string) => {
    throw new GradusError('policy', 'unsupported-model', `The decoder cannot run this model: ${reason}.`);
  };
  const sizes = [
    'vocabSize',
    'hiddenSize',
    'intermediateSize',
    'layers',
    'attentionHeads',
    'keyValueHeads',
    'headSize',
    'maxPositions',
  ] as const;
  for (const name of sizes) {
    if (!Number.isInteger(config[name]) || config[name] < 1) {
      refuse(`${name} is ${config[name]}; make it a whole number of at least 1`);
    }
  }
  if (config.headSize % 16 !== 0) {
    refuse(
      `headSize is ${config.headSize}; GroupQueryAttention rotates multiples of 16, so choose one of them`,
    );
  }
  if (config.attentionHeads % config.keyValueHeads !== 0) {
    refuse(
      `attentionHeads ${config.attentionHeads} is no multiple of keyValueHeads ${config.keyValueHeads}; make it one`,
    );
  }
  if (!(config.rmsNormEpsilon > 0)) refuse(`rmsNormEpsilon is ${config.rmsNormEpsilon}; make it positive`);
  if (!(config.ropeTheta > 1)) refuse(`ropeTheta is ${config.ropeTheta}; make it greater than 1`);
}
