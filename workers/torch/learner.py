"""The activities of the learner's queue: trainStep and scoreTokens (docs/learner-contract.md). With several ranks each makes
them together with the others, and rank 0 writes."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

import checkpoint as checkpoints
import tensors_file
from adam import Adam
from batch import decode
from check import check_batch, check_finite, check_sequences, check_settings, check_temperature
from checkpoint import Checkpoint, Trained, adapted_modules, adapter_name
from fault import Fault
from losses import LOSSES, Loss, loss_of
from losses.own import OWN
from network import adapter_parameters, add_adapter, attention, causal_model, critic_model, ids_without_token, parsed
from objects import ObjectStore
from random_numbers import random_key, uniform
from ranks import Ranks, Stopped, like, whole
from scoring import FORMAT, completions, lay_out, read_group, task_episodes
from step import CriticUpdates, PolicyUpdates, Surroundings, chosen, distribution, train

DEFAULT_COMPUTE = {"precision": "float32", "gradientCheckpointing": False, "microBatchTokens": 0}


@dataclass
class Network:
    """A network on the device with what is trained of it, which is stored under these names."""

    model: nn.Module
    adam: Adam

    def trained(self) -> Trained:
        """Whole tensors on every rank; moments where there has been an update."""
        adam = self.adam
        take = lambda tensors: {name: whole(tensor.detach()).cpu().clone() for name, tensor in tensors.items()}
        moments = (take(adam.first), take(adam.second)) if adam.begun else ({}, {})
        return Trained(take(adam.parameters), *moments, adam.updates)


@dataclass
class Held:
    """What the last step has left on the device, so that the next one need not read it again."""

    manifest: str
    compute: dict
    checkpoint: Checkpoint
    policy: Network
    critic: Network | None


class Learner:
    def __init__(self, store: ObjectStore, ranks: Ranks) -> None:
        self.store = store
        self.ranks = ranks
        self.held: Held | None = None
        self.others: dict[str, nn.Module] = {}
        device = torch.cuda.get_device_name(ranks.device) if ranks.device.type == "cuda" else "cpu"
        ranked = f", {ranks.count} ranks" if ranks.sharded else ""
        self.backend = f"pytorch {torch.__version__.split('+')[0]} {device}{ranked}"

    def capabilities(self) -> dict:
        """gradus.learner/1."""
        cpu = self.ranks.device.type == "cpu"
        return {
            "format": "gradus.learner/1",
            "backend": self.backend,
            "losses": [*LOSSES, *(f"own:{name}" for name in OWN)],
            "critic": True,
            "rewardModels": False,
            "precisions": ["float32", "bfloat16"],
            "lora": True,
            "gradientCheckpointing": True,
            "architectures": "any causal model of transformers",
            # A GPU adds up in another order each time.
            "repeatsToTheBit": cpu,
        }

    def refuse_reward_models(self, request: dict, stopped: Callable[[], bool] = lambda: False) -> dict:
        raise Fault("learner", "settings", "this learner has no reward models: have the learner of Gradus serve the queue")

    def train_step(self, request: dict, stopped: Callable[[], bool] = lambda: False) -> dict:
        start = now()
        key = f"runs/{request['run']}/metrics/{request['stage']}/{request['stageStep']:06d}.json"
        # A step that was committed is not made again: who was first may have computed other bits.
        record = self.ranks.first(lambda: self.store.find_json(key))
        if record is None:
            record = self._record(request, key, stopped)
        spans = [{"part": "learner", "start": start, "end": now()}]
        return {name: record[name] for name in ("checkpoint", "metrics", "backend")} | {"spans": spans}

    def _record(self, request: dict, key: str, stopped: Callable[[], bool]) -> dict:
        held, metrics, backend = self._step(request, stopped)
        saved = self.ranks.first(lambda: checkpoints.save(self.store, request, held.checkpoint, backend))
        held.manifest = saved["manifest"]["sha256"]
        self.held = held
        report = {
            "stage": request["stage"],
            "step": request["step"],
            "metrics": metrics,
            "checkpoint": saved,
            "backend": self.backend,
        }
        return self.ranks.first(lambda: self.store.keep_json(key, report)[1])

    def _step(self, request: dict, stopped: Callable[[], bool]) -> tuple[Held, dict, str]:
        """Computes a step, and stores nothing."""
        objective, critic = request["objective"], request.get("critic")
        compute = DEFAULT_COMPUTE | (request.get("compute") or {})
        loss = loss_of(objective) if objective else None
        check_settings(objective, critic, compute, loss)
        batch = self.ranks.agree(lambda: decode(self.store.get(request["batch"])))
        held = self._take(request, compute, stopped)
        checkpoint = held.checkpoint
        config, unknown = checkpoint.config, self._unknown(checkpoint)
        check_batch(batch, loss, critic)
        check_sequences(
            batch, config["max_position_embeddings"], config["vocab_size"], unknown, loss.top_k if loss else 0
        )
        around = self._around(compute, unknown, stopped)
        vocabulary = config["vocab_size"]
        reference, teachers = self._others(request, loss, "reference" in batch.streams, checkpoint, compute)
        if critic is None:
            held.critic = None
        elif held.critic is None:
            held.critic = self._critic(checkpoint, self._current(held), compute)
        policy = None
        if loss:
            given = (batch, loss, request["optimizer"], vocabulary, reference, teachers)
            policy = PolicyUpdates(around, held.policy.model, held.policy.adam, *given)
            policy.max_gap = request.get("maxLogprobGap")
        of_critic = None
        if critic:
            of_critic = CriticUpdates(around, held.critic.model, held.critic.adam, batch, critic, vocabulary)
        metrics = train(around, batch, policy, of_critic)
        checkpoint.policy = held.policy.trained()
        checkpoint.critic = held.critic.trained() if held.critic else None
        backend = self.backend if compute["precision"] == "float32" else f"{self.backend}, {compute['precision']}"
        return held, metrics, backend

    def _take(self, request: dict, compute: dict, stopped: Callable[[], bool]) -> Held:
        """The parent as the step is to train it. It is this step's alone until that has ended well."""
        held, self.held = self.held, None
        lora, parent = request.get("lora"), request["parent"]
        manner = {name: compute[name] for name in ("precision", "gradientCheckpointing")}
        fits = held is not None and held.manifest == parent["manifest"]["sha256"] and held.compute == manner
        if fits and held.checkpoint.lora is None and lora is None and not request["resetOptimizer"]:
            return held
        if fits and held.checkpoint.lora is not None and same_lora(held.checkpoint.lora, lora) and not request["resetOptimizer"]:
            return held
        del held
        # Moments that are thrown away need not be made again.
        again = None if request["resetOptimizer"] else self._again(parent, stopped)
        checkpoint = self.ranks.agree(lambda: checkpoints.load(self.store, parent))
        if again:
            checkpoint.policy = with_moments_of(checkpoint.policy, again.policy)
            checkpoint.critic = checkpoint.critic and with_moments_of(checkpoint.critic, again.critic)
        if lora is not None and checkpoint.lora is None:
            base = checkpoint.policy.weights
            adapter = initial_adapter(base, lora, request["seed"])
            checkpoint.base, checkpoint.base_weights, checkpoint.lora = parent, base, lora
            checkpoint.policy = Trained(adapter, updates=checkpoint.policy.updates)
        if not same_lora(checkpoint.lora, lora):
            raise Fault(
                "learner",
                "adapter",
                f"{parent['manifest']['key']} has {'another' if checkpoint.lora else 'no'} LoRA adapter than the step is to "
                "train: begin a run with it by model.from, which merges it into its weights",
            )
        if request["resetOptimizer"]:
            checkpoint.policy = checkpoint.policy.afresh()
            checkpoint.critic = checkpoint.critic and checkpoint.critic.afresh()
        critic = None
        if checkpoint.critic and request.get("critic"):
            critic = self._critic(checkpoint, checkpoint.critic, compute)
        return Held("", manner, checkpoint, self._policy(checkpoint, compute), critic)

    def _again(self, ref: dict, stopped: Callable[[], bool]) -> Checkpoint | None:
        """What a checkpoint's step comes to, where the store has no moments of it; before it that of its own parent is made
        again, back to a checkpoint that has some. The stored weights count: a GPU comes to others."""
        made_by = self.ranks.agree(lambda: checkpoints.made_by(self.store, ref))
        return None if made_by is None else self._step(made_by, stopped)[0].checkpoint

    def _policy(self, checkpoint: Checkpoint, compute: dict) -> Network:
        base = checkpoint.policy.weights if checkpoint.lora is None else checkpoint.base_weights
        model = causal_model(checkpoint.config, base, compute, self.ranks.device)
        if checkpoint.lora is not None:
            model = add_adapter(model, checkpoint.lora, checkpoint.policy.weights)
        model = self.ranks.shard(model)
        named = dict(model.named_parameters()) if checkpoint.lora is None else adapter_parameters(model)
        return Network(model, self._adam({name: named[name] for name in checkpoint.policy.weights}, checkpoint.policy))

    def _critic(self, checkpoint: Checkpoint, trained: Trained, compute: dict) -> Network:
        model, stored = critic_model(checkpoint.config, trained.weights, compute, self.ranks.device)
        named = dict(self.ranks.shard(model).named_parameters())
        by_stored = {kept: named[name] for name, kept in stored.items()}
        return Network(model, self._adam({name: by_stored[name] for name in trained.weights}, trained))

    def _adam(self, parameters: dict[str, nn.Parameter], trained: Trained) -> Adam:
        first, second = (
            {name: like(tensors[name], parameters[name].detach()) for name in tensors}
            for tensors in (trained.first, trained.second)
        )
        return Adam(parameters, first, second, trained.updates)

    def _current(self, held: Held) -> Trained:
        """A critic that expects 0 of every state: the network of the policy as it is, an adapter merged into it."""
        held.checkpoint.policy = held.policy.trained()
        weights = {name: tensor for name, tensor in held.checkpoint.merged().items() if name != "lm_head.weight"}
        size = held.checkpoint.config["hidden_size"]
        return Trained(weights | {"value_head.weight": torch.zeros(1, size), "value_head.bias": torch.zeros(1)})

    def _around(self, compute: dict, unknown: torch.Tensor | None, stopped: Callable[[], bool]) -> Surroundings:
        def advance(together: bool = False) -> None:
            # With several ranks all stop, or none does.
            if self.ranks.told(stopped()) if together else not self.ranks.sharded and stopped():
                raise Stopped()

        one_row = attention(self.ranks.device, compute["precision"]) == "flash_attention_2"
        return Surroundings(self.ranks, compute, one_row, unknown, advance)

    def _unknown(self, checkpoint: Checkpoint) -> torch.Tensor | None:
        return ids_without_token(parsed(checkpoint.files, "tokenizer.json"), checkpoint.config["vocab_size"])

    def _others(self, request: dict, loss: Loss | None, told: bool, checkpoint: Checkpoint, compute: dict):
        """The reference and the teachers, as far as the step reads them."""
        reads = loss is not None and "reference" in loss.reads and not told
        if reads and not request.get("reference"):
            raise Fault(
                "learner",
                "settings",
                f"the objective {request['objective']['kind']} reads a reference as it is set: give its weights, or its "
                "log-probs with the batch",
            )
        refs = request.get("teachers") or []
        shares = loss.teachers if loss else ()
        if len(shares) != len(refs) and loss and loss.kind == "distribution":
            message = f"{len(shares)} teachers have a weight and {len(refs)} are given"
            raise Fault("learner", "settings", message)
        if shares and (min(shares) < 0 or abs(sum(shares) - 1) > 1e-6):
            message = f"the teachers' weights are {list(shares)}: give shares that sum to 1"
            raise Fault("learner", "settings", message)
        wanted = ([request["reference"]] if reads else []) + (refs if shares else [])
        self.others = {self._name(ref, compute): self._other(ref, checkpoint, compute) for ref in wanted}
        models = [self.others[self._name(ref, compute)] for ref in wanted]
        return (models[0], models[1:]) if reads else (None, models)

    def _name(self, ref: dict, compute: dict) -> str:
        return f"{ref['manifest']['sha256']} {compute['precision']}"

    def _other(self, ref: dict, checkpoint: Checkpoint, compute: dict) -> nn.Module:
        """A model that is read only; those of the last step are kept."""
        kept = self.others.get(self._name(ref, compute))
        if kept is not None:
            return kept
        other = self.ranks.agree(lambda: checkpoints.load(self.store, ref, moments=False))
        ours, theirs = self._unknown(checkpoint), self._unknown(other)
        alike = (ours is None) == (theirs is None) and (ours is None or torch.equal(ours, theirs))
        if other.config["vocab_size"] != checkpoint.config["vocab_size"] or not alike:
            raise Fault(
                "learner",
                "settings",
                f"{ref['manifest']['key']} has {other.config['vocab_size']} tokens, the policy "
                f"{checkpoint.config['vocab_size']}: both need one vocabulary",
            )
        without = compute | {"gradientCheckpointing": False}
        model = causal_model(other.config, other.merged(), without, self.ranks.device)
        return self.ranks.shard(model.requires_grad_(False))

    def score_tokens(self, request: dict, stopped: Callable[[], bool] = lambda: False) -> dict:
        start = now()
        compute = DEFAULT_COMPUTE | (request.get("compute") or {})
        read = lambda: [read_group(self.store.get_json(ref), ref["key"]) for ref in request["groups"]]
        groups = self.ranks.agree(read)
        episodes = task_episodes(groups, request["reward"]["truncated"])
        scores = self._scores(request, episodes, compute, stopped)
        key = f"runs/{request['run']}/scores/{request['stage']}/{request['step']:06d}.safetensors"
        data = tensors_file.write(scores, {"format": FORMAT})
        ref = self.ranks.first(lambda: self.store.put_once(key, data, "application/octet-stream"))
        return {"scores": ref, "spans": [{"part": "learner", "start": start, "end": now()}]}

    def probe_policy(self, request: dict, stopped: Callable[[], bool] = lambda: False) -> None:
        """What the weights of a checkpoint make of the fixed sequence, stored for those who hand them to servers."""
        ref = request["checkpoint"]
        key = f"runs/{request['run']}/probes/{ref['weights']}.json"
        if self.ranks.first(lambda: self.store.head(key)) is not None:
            return
        checkpoint = self.ranks.agree(lambda: checkpoints.load(self.store, ref, moments=False))
        config, unknown = checkpoint.config, self._unknown(checkpoint)
        tokens = probe_tokens(config["vocab_size"], config["max_position_embeddings"], unknown)
        batch = lay_out([(tokens[:1], {"tokens": tokens[1:], "mask": [1] * (len(tokens) - 1)})])
        around = self._around(DEFAULT_COMPUTE, unknown, stopped)
        packed = around.pack(batch, [0], config["vocab_size"])

        def take(rows, logits):
            return chosen(distribution(logits, rows, batch, (1.0, 0), unknown), rows, batch)

        logprobs = around.per_token(self._policy(checkpoint, DEFAULT_COMPUTE).model, packed, len(tokens), take)
        check_finite(logprobs, "the weights that score it")
        said = {"tokens": tokens, "logprobs": [float(value) for value in logprobs[1:]]}
        self.ranks.first(lambda: self.store.keep_json(key, said))

    def _scores(self, request: dict, episodes: list, compute: dict, stopped: Callable[[], bool]) -> dict:
        asked, batch = request["scores"], lay_out(episodes)
        if len(batch.tokens) == 0:
            return {name: torch.zeros(0) for name in asked}
        check_temperature(request["from"]["temperature"])
        checkpoint = self.ranks.agree(lambda: checkpoints.load(self.store, request["policy"]))
        config, unknown = checkpoint.config, self._unknown(checkpoint)
        of = (request["from"]["temperature"], request["from"]["topK"])
        check_sequences(batch, config["max_position_embeddings"], config["vocab_size"], unknown, of[1])
        around = self._around(compute, unknown, stopped)
        packed = around.pack(batch, list(range(len(batch))), config["vocab_size"])

        def logprobs(model: nn.Module) -> torch.Tensor:
            def take(rows, logits):
                return chosen(distribution(logits, rows, batch, of, unknown), rows, batch)

            values = around.per_token(model, packed, len(batch.tokens), take)
            check_finite(values, "the weights that score it")
            return values

        scores = {}
        without = compute | {"gradientCheckpointing": False}
        if "values" in asked:
            scores["values"] = torch.zeros(len(batch.tokens))
            if checkpoint.critic:
                critic = self._critic(checkpoint, checkpoint.critic, without)
                scores["values"] = around.per_token(
                    critic.model, packed, len(batch.tokens), lambda rows, values: values
                )
                check_finite(scores["values"], "the critic", "value")
        if "policy" in asked:
            scores["policy"] = logprobs(self._policy(checkpoint, without).model)
        if request.get("reference"):
            scores["reference"] = logprobs(self._other(request["reference"], checkpoint, without))
        return {name: completions(batch, episodes, values) for name, values in scores.items()}


def same_lora(one: dict | None, other: dict | None) -> bool:
    sorted_of = lambda lora: lora and [lora["rank"], lora["alpha"], lora["rsLora"], sorted(lora["targetModules"])]
    return sorted_of(one) == sorted_of(other)


def with_moments_of(stored: Trained, made: Trained) -> Trained:
    return Trained(stored.weights, made.first, made.second, stored.updates)


PROBE_TOKENS = 256


def probe_tokens(vocabulary: int, positions: int, unknown: torch.Tensor | None) -> list[int]:
    """The fixed sequence of activities/training/probe.ts."""
    ids = [id for id in range(vocabulary) if unknown is None or not unknown[id]]
    length = max(2, min(PROBE_TOKENS, positions - 2))
    return [ids[int(draw * len(ids))] for draw in uniform(random_key("policy-probe"), length)]


def initial_adapter(base: dict[str, torch.Tensor], lora: dict, seed: int) -> dict[str, torch.Tensor]:
    """An adapter that changes nothing yet: A uniform in ± 1/√in (He et al. 2015 with a = √5, as PEFT's default has it), B
    zero. A function of the seed, to the bit that of engine/lora/initial-adapter.ts."""
    adapter = {}
    for module in adapted_modules(base, lora):
        out, inputs = base[f"{module}.weight"].shape
        name = adapter_name(module, "A")
        drawn = uniform(random_key(seed, "initial-adapter", name), lora["rank"] * inputs)
        numbers = (1 / inputs**0.5) * (2 * drawn - 1)
        adapter[name] = torch.from_numpy(numbers.astype("float32")).reshape(lora["rank"], inputs)
        adapter[adapter_name(module, "B")] = torch.zeros(out, lora["rank"])
    return adapter


def now() -> int:
    """Epoch milliseconds."""
    return int(time.time() * 1000)
