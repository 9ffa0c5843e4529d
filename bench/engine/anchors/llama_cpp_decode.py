"""llama.cpp in float32 through the low-level functions of llama-cpp-python: one batch of all sequences a step."""

import json
from pathlib import Path

import gguf
import llama_cpp as lc
import numpy as np
from hf_folder import weights_of
from protocol import serve

state: dict = {}

NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp rotates neighbouring dimensions, Hugging Face halves: rows of queries and keys change places."""
    rows = weight.shape[0] // heads // 2
    return weight.reshape(heads, 2, rows, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def convert(folder: Path, target: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    # NumPy has no bfloat16.
    weights = {name: weight.float().numpy() for name, weight in weights_of(str(folder)).items()}
    heads = config["num_attention_heads"]
    # llama.cpp rotates halves, as Hugging Face does, in this family, and neighbours in the other.
    family = "qwen2" if config["model_type"] == "qwen2" else "llama"
    writer = gguf.GGUFWriter(str(target), family)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config.get("head_dim", config["hidden_size"] // heads))
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(0)
    writer.add_tensor("token_embd.weight", weights["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"])
    if not config["tie_word_embeddings"]:
        writer.add_tensor("output.weight", weights["lm_head.weight"])
    for layer in range(config["num_hidden_layers"]):
        for name, theirs in NAMES.items():
            weight = weights[f"model.layers.{layer}.{name}.weight"]
            if family == "llama" and name.endswith("q_proj"):
                weight = interleave(weight, heads)
            if family == "llama" and name.endswith("k_proj"):
                weight = interleave(weight, config["num_key_value_heads"])
            writer.add_tensor(f"blk.{layer}.{theirs}.weight", np.ascontiguousarray(weight))
            bias = weights.get(f"model.layers.{layer}.{name}.bias")
            if bias is not None:
                writer.add_tensor(f"blk.{layer}.{theirs}.bias", bias)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def load(folder: str, threads: int) -> dict:
    target = Path(folder) / "model.gguf"
    if not target.exists():
        convert(Path(folder), target)
    lc.llama_backend_init()
    params = lc.llama_model_default_params()
    params.n_gpu_layers = 0
    model = lc.llama_model_load_from_file(str(target).encode(), params)
    vocabulary = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))
    state.update(model=model, threads=threads, vocabulary=vocabulary)
    return {"version": lc.__version__}


class Context:
    """Sequences that are decoded together."""

    def __init__(self, sequences: int, length: int, top_p: float) -> None:
        params = lc.llama_context_default_params()
        params.n_ctx = sequences * length
        params.n_batch = 2048
        params.n_ubatch = 512
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = state["threads"]
        params.no_perf = True
        self.context = lc.llama_init_from_model(state["model"], params)
        self.sequences = sequences
        size = max(2048, sequences)
        self.batch = lc.llama_batch_init(size, 0, 1)
        view = np.ctypeslib.as_array
        self.token = view(self.batch.token, (size,))
        self.position = view(self.batch.pos, (size,))
        self.wanted = view(self.batch.logits, (size,))
        view(self.batch.n_seq_id, (size,))[:] = 1
        self.ids = [self.batch.seq_id[i] for i in range(size)]
        self.samplers = [self.sampler(i, top_p) for i in range(sequences)] if top_p > 0 else []

    def sampler(self, seed: int, top_p: float) -> object:
        chain = lc.llama_sampler_chain_init(lc.llama_sampler_chain_default_params())
        lc.llama_sampler_chain_add(chain, lc.llama_sampler_init_top_p(top_p, 1))
        lc.llama_sampler_chain_add(chain, lc.llama_sampler_init_temp(1.0))
        lc.llama_sampler_chain_add(chain, lc.llama_sampler_init_dist(seed))
        return chain

    def feed(self, tokens: np.ndarray, start: int) -> list[int]:
        """Feeds [sequences, n] from position `start`; gives where in the output each sequence's last token is."""
        sequences, count = tokens.shape
        per_call = max(1, 2048 // count)
        rows = []
        for first in range(0, sequences, per_call):
            some = tokens[first : first + per_call]
            size = some.size
            self.token[:size] = some.ravel()
            self.position[:size] = np.tile(np.arange(start, start + count), len(some))
            wanted = np.zeros(some.shape, np.int8)
            wanted[:, -1] = 1
            self.wanted[:size] = wanted.ravel()
            for i in range(size):
                self.ids[i][0] = first + i // count
            self.batch.n_tokens = size
            if lc.llama_decode(self.context, self.batch) != 0:
                raise RuntimeError("llama_decode failed")
            rows.append((first, len(some), count))
        return rows

    def step(self, tokens: list[int], position: int) -> None:
        n = self.sequences
        self.token[:n] = tokens
        self.position[:n] = position
        self.batch.n_tokens = n
        if lc.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama_decode failed")

    def one_each(self) -> None:
        self.wanted[: self.sequences] = 1
        for i in range(self.sequences):
            self.ids[i][0] = i

    def draw(self, index: list[int]) -> list[int]:
        if not self.samplers:
            rows = [
                np.ctypeslib.as_array(lc.llama_get_logits_ith(self.context, i), (state["vocabulary"],)) for i in index
            ]
            return [int(row.argmax()) for row in rows]
        return [lc.llama_sampler_sample(self.samplers[s], self.context, i) for s, i in enumerate(index)]

    def close(self) -> None:
        for chain in self.samplers:
            lc.llama_sampler_free(chain)
        lc.llama_batch_free(self.batch)
        lc.llama_free(self.context)


def extend(context: Context, tokens: np.ndarray, start: int, new_tokens: int) -> tuple[list[list[int]], int]:
    """Feeds what is there, then draws `new_tokens` of each sequence; the last one is drawn but not fed."""
    if tokens.size > 2048:
        raise RuntimeError("more tokens than one call takes")
    context.feed(tokens, start)
    position = start + tokens.shape[1]
    drawn = context.draw([(s + 1) * tokens.shape[1] - 1 for s in range(context.sequences)])
    history = [drawn]
    context.one_each()
    for _ in range(new_tokens - 1):
        context.step(drawn, position)
        position += 1
        drawn = context.draw(list(range(context.sequences)))
        history.append(drawn)
    return history, position


def greedy(prompt: list[int], new_tokens: int) -> dict:
    context = Context(1, len(prompt) + new_tokens + 8, 0)
    history, _ = extend(context, np.array([prompt], np.int32), 0, new_tokens)
    context.close()
    return {"tokens": [tokens[0] for tokens in history]}


def decode(prompts: list[list[int]], new_tokens: int, top_p: float) -> dict:
    context = Context(len(prompts), len(prompts[0]) + new_tokens + 8, top_p)
    extend(context, np.array(prompts, np.int32), 0, new_tokens)
    context.close()
    return {"tokens": len(prompts) * new_tokens}


def turns(prompt: list[int], samples: int, results: list[list[int]], new_tokens: int, top_p: float) -> dict:
    """The shared prompt is computed once and its cache copied; between turns every cache stays where it is."""
    length = len(prompt) + sum(len(result) + new_tokens for result in results) + 8
    context = Context(samples, length, top_p)
    memory = lc.llama_get_memory(context.context)
    if len(prompt) > 1:
        context.feed(np.array([prompt[:-1]], np.int32), 0)
        for sequence in range(1, samples):
            lc.llama_memory_seq_cp(memory, 0, sequence, -1, -1)
    pending = np.array([prompt[-1:]] * samples, np.int32)
    position = len(prompt) - 1
    for result in results:
        history, position = extend(context, pending, position, new_tokens)
        last = np.array(history[-1], np.int32)[:, None]
        pending = np.concatenate([last, np.array([result] * samples, np.int32)], 1)
    context.close()
    return {"tokens": samples * new_tokens * len(results)}


serve({"load": load, "greedy": greedy, "decode": decode, "turns": turns})
