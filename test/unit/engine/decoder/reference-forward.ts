import type { ModelConfig, Weights } from '../../../../core/model/config.ts';

/**
 * Logits [T][V] of every position, in float64 and straight from the equations (Touvron et al. 2023; the rotary
 * embedding pairs i with i + D/2, as Hugging Face does).
 */
export function referenceLogits(
  config: ModelConfig,
  weights: Weights,
  tokens: readonly number[],
): number[][] {
  const { hiddenSize: d, attentionHeads: H, keyValueHeads: K, headSize: D } = config;
  const data = (name: string) => weights.get(name)!.data;
  const linear = (x: number[], name: string) => {
    const w = data(name);
    return Array.from({ length: w.length / x.length }, (_, o) =>
      x.reduce((sum, value, i) => sum + value * w[o * x.length + i]!, 0),
    );
  };
  const norm = (x: number[], name: string) => {
    const scale = 1 / Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length + config.rmsNormEpsilon);
    return x.map((v, i) => v * scale * data(name)[i]!);
  };
  const heads = (x: number[], n: number) => Array.from({ length: n }, (_, h) => x.slice(h * D, (h + 1) * D));
  const rotate = (x: number[], position: number) =>
    x.map((value, i) => {
      const angle = position * config.ropeTheta ** ((-2 * (i % (D / 2))) / D);
      const other = i < D / 2 ? -x[i + D / 2]! : x[i - D / 2]!;
      return value * Math.cos(angle) + other * Math.sin(angle);
    });

  const embedding = data('model.embed_tokens.weight');
  let states = tokens.map((token) => [...embedding.subarray(token * d, (token + 1) * d)]);
  for (let layer = 0; layer < config.layers; layer++) {
    const at = (name: string) => `model.layers.${layer}.${name}.weight`;
    const normed = states.map((x) => norm(x, at('input_layernorm')));
    const queries = normed.map((x, t) =>
      heads(linear(x, at('self_attn.q_proj')), H).map((q) => rotate(q, t)),
    );
    const keys = normed.map((x, t) => heads(linear(x, at('self_attn.k_proj')), K).map((k) => rotate(k, t)));
    const values = normed.map((x) => heads(linear(x, at('self_attn.v_proj')), K));
    states = states.map((x, t) => {
      const mixed = queries[t]!.flatMap((q, h) => {
        const group = Math.floor(h / (H / K));
        const scores = keys.slice(0, t + 1).map((k) => dot(q, k[group]!) / Math.sqrt(D));
        const weight = softmax(scores);
        return q.map((_, i) => weight.reduce((sum, w, s) => sum + w * values[s]![group]![i]!, 0));
      });
      const attended = add(x, linear(mixed, at('self_attn.o_proj')));
      const y = norm(attended, at('post_attention_layernorm'));
      const gate = linear(y, at('mlp.gate_proj'));
      const up = linear(y, at('mlp.up_proj'));
      const hidden = gate.map((g, i) => (g / (1 + Math.exp(-g))) * up[i]!);
      return add(attended, linear(hidden, at('mlp.down_proj')));
    });
  }
  const head = config.tieEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight';
  return states.map((x) => linear(norm(x, 'model.norm.weight'), head));
}

export function softmax(scores: readonly number[]): number[] {
  const max = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - max));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const add = (a: number[], b: number[]) => a.map((value, i) => value + b[i]!);
