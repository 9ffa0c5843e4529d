import type { ModelConfig, Weights } from '../../../../core/model/config.ts';

/**
 * The decoder in double precision with loops, token by token, written from Hugging Face's LlamaForCausalLM and from
 * nothing of the learner's: what its log-probs are measured against. Log-probs [T] of each token given those
 * before it; the first is 0.
 */
export function referenceLogprobs(
  config: ModelConfig,
  weights: Weights,
  tokens: number[],
  temperature = 1,
): number[] {
  const {
    hiddenSize,
    layers,
    attentionHeads: H,
    keyValueHeads: K,
    headSize: D,
    rmsNormEpsilon,
    ropeTheta,
  } = config;
  const data = (name: string) => weights.get(name)!.data;
  const matVec = (name: string, x: number[]) => {
    const matrix = data(name);
    return Array.from({ length: matrix.length / x.length }, (_, row) =>
      x.reduce((sum, value, i) => sum + value * matrix[row * x.length + i]!, 0),
    );
  };
  const norm = (name: string, x: number[]) => {
    const scale = 1 / Math.sqrt(x.reduce((sum, value) => sum + value * value, 0) / x.length + rmsNormEpsilon);
    return x.map((value, i) => value * scale * data(name)[i]!);
  };
  const rotate = (x: number[], position: number) =>
    x.map((value, i) => {
      const head = i - (i % D);
      const j = i % D;
      const angle = position / ropeTheta ** ((2 * (j % (D / 2))) / D);
      const partner = j < D / 2 ? -x[head + j + D / 2]! : x[head + j - D / 2]!;
      return value * Math.cos(angle) + partner * Math.sin(angle);
    });
  const add = (a: number[], b: number[]) => a.map((value, i) => value + b[i]!);
  const softmax = (x: number[]) => {
    const largest = Math.max(...x);
    const exps = x.map((value) => Math.exp(value - largest));
    const total = exps.reduce((sum, value) => sum + value, 0);
    return exps.map((value) => value / total);
  };

  const keys = Array.from({ length: layers }, (): number[][] => []);
  const values = Array.from({ length: layers }, (): number[][] => []);
  const logprobs = [0];
  for (let position = 0; position + 1 < tokens.length; position++) {
    const embedding = data('model.embed_tokens.weight');
    let x = Array.from(embedding.slice(tokens[position]! * hiddenSize, (tokens[position]! + 1) * hiddenSize));
    for (let layer = 0; layer < layers; layer++) {
      const at = (name: string) => `model.layers.${layer}.${name}.weight`;
      const h = norm(at('input_layernorm'), x);
      const q = rotate(matVec(at('self_attn.q_proj'), h), position);
      keys[layer]!.push(rotate(matVec(at('self_attn.k_proj'), h), position));
      values[layer]!.push(matVec(at('self_attn.v_proj'), h));
      const mixed = Array.from({ length: H * D }, () => 0);
      for (let head = 0; head < H; head++) {
        const shared = Math.floor(head / (H / K)) * D;
        const scores = keys[layer]!.map((key) => {
          let dot = 0;
          for (let i = 0; i < D; i++) dot += q[head * D + i]! * key[shared + i]!;
          return dot / Math.sqrt(D);
        });
        softmax(scores).forEach((p, t) => {
          for (let i = 0; i < D; i++) mixed[head * D + i]! += p * values[layer]![t]![shared + i]!;
        });
      }
      x = add(x, matVec(at('self_attn.o_proj'), mixed));
      const g = norm(at('post_attention_layernorm'), x);
      const up = matVec(at('mlp.up_proj'), g);
      const inner = matVec(at('mlp.gate_proj'), g).map((z, i) => (z / (1 + Math.exp(-z))) * up[i]!);
      x = add(x, matVec(at('mlp.down_proj'), inner));
    }
    const head = config.tieEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight';
    const logits = matVec(head, norm('model.norm.weight', x)).map((logit) => logit / temperature);
    logprobs.push(Math.log(softmax(logits)[tokens[position + 1]!]!));
  }
  return logprobs;
}
