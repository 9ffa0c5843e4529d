import { InferenceSession } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { parameterCount, type ModelConfig } from '../../../../core/model/config.ts';
import { buildDecoderGraph, WEIGHTS_FILE } from '../../../../engine/onnx/decoder-graph.ts';
import { smallConfig } from '../../../support/engine/random-model.ts';

describe('the graph of a decoder', () => {
  it('is a pure function of the configuration and takes the weights from outside', async () => {
    const config: ModelConfig = { ...smallConfig, tieEmbeddings: false };
    const bytes = buildDecoderGraph(config);
    expect(buildDecoderGraph(config)).toEqual(bytes);
    const data = new Uint8Array(4 * parameterCount(config));
    const session = await InferenceSession.create(bytes, { externalData: [{ path: WEIGHTS_FILE, data }] });
    expect(session.inputNames.slice(0, 6)).toEqual([
      'input_ids',
      'seqlens_k',
      'total_sequence_length',
      'row',
      'past.0.key',
      'past.0.value',
    ]);
    expect(session.outputNames).toHaveLength(1 + 4 * config.layers);
    await session.release();
    await expect(
      InferenceSession.create(bytes, { externalData: [{ path: WEIGHTS_FILE, data: data.subarray(4) }] }),
    ).rejects.toThrow();
  });

  it.each<[string, Partial<ModelConfig>]>([
    ['a head size that the rotary kernel cannot take', { headSize: 24 }],
    ['heads that do not divide', { attentionHeads: 6, keyValueHeads: 4 }],
    ['no layers', { layers: 0 }],
    ['half a layer', { layers: 1.5 }],
    ['a negative epsilon', { rmsNormEpsilon: -1 }],
    ['no theta', { ropeTheta: Number.NaN }],
  ])('is refused for %s', (_, change) => {
    expect(() => buildDecoderGraph({ ...smallConfig, ...change })).toThrow(
      expect.objectContaining({ boundary: 'policy', type: 'unsupported-model', retryable: false }),
    );
  });
});
