"""The cases of credit.json and losses.json through the functions of verl, TRL and TorchRL, where they have the method.

Each function takes a case and yields (library, function, what came out), in the shape of the case's `expected`. A sample
that is left out is not shown to the library. DIFFERS says, for every case in which a library does not agree with the paper,
why: write.py fails where a reason is missing, and where one is given without need.
"""

import types
from collections import defaultdict
from importlib.metadata import version

import numpy
import torch

from bare import ActorConfig, core_algos, rollout_corr_helper, torch_functional, value_functional
from papers import group_baselines
from papers.tokens import spans, tensor, token_logprobs
from trl import DPOTrainer, GRPOTrainer, KTOTrainer
from trl.experimental.gkd import GKDTrainer

DTYPE = torch.float64
VERL, TRL, TORCHRL = (f"{name} {version(name)}" for name in ("verl", "trl", "torchrl"))

ONE_SAMPLE = "a group of one has no mean taken off: the advantage is the reward itself, where the paper's formula gives 0"
DUAL_CLIP = "dual-clip PPO (Ye et al. 2020, arXiv 1912.09729): for A < 0 the loss is held at 3 |A|"
EMPTY_SEQUENCE = "a sequence of which nothing counts is {}"
DIFFERS = {
    **{
        (VERL, case): ONE_SAMPLE
        for case in [
            *[f"{method}: {name}" for method in ("grpo", "dr-grpo", "rloo") for name in ("alone", "left out")],
            *[f"reinforce++-baseline: {name}" for name in ("alone", "left out")],
        ]
    },
    (VERL, "reinforce++: nothing differs"): "its mean is over 1e-8 more than the tokens there are: 1e-5 instead of 0",
    (VERL, "clipped-surrogate: ratios above 3"): DUAL_CLIP,
    (VERL, "clipped-surrogate: a sequence of which nothing counts, Dr. GRPO"): EMPTY_SEQUENCE.format(
        "no sequence: the mean is over the others, where the paper divides by all G"
    ),
    (TRL, "clipped-surrogate: a sequence of which nothing counts, sequence mean"): EMPTY_SEQUENCE.format(
        "one of loss 0 in the mean over sequences; here, and in verl, the mean is over the others"
    ),
    (TRL, "clipped-surrogate: entropy bonus, sequence mean, temperature 0.8"): (
        "the entropy is a mean over tokens whatever the aggregation of the policy's loss; here it has the same weights"
    ),
    (TRL, "gspo: sequence ratios"): EMPTY_SEQUENCE.format(
        "one of loss 0 in the mean over sequences; here, and in verl, the mean is over the others"
    ),
    (TRL, "gspo: GSPO-token"): (
        "sequence-level ratios with advantages per token keep the slope of the sequence's mean log-prob: the loss is "
        "the same, the gradient is not that of GSPO-token"
    ),
    (TRL, "dpo: IPO"): (
        "log-ratios are means over tokens rather than sums; TRL says that its authors did so in their experiments"
    ),
}


# Credit


def batch_of(case):
    """The known samples as verl has them: padded masks [B, T], the outcome at the last sampled token [B, T], a group's
    number for each."""
    known = [(g, s) for g, group in enumerate(case["groups"]) for s in group["samples"] if s["reward"] is not None]
    longest = max(len(sample["mask"]) for _, sample in known)
    mask = torch.zeros(len(known), longest, dtype=DTYPE)
    rewards = torch.zeros_like(mask)
    for i, (_, sample) in enumerate(known):
        mask[i, : len(sample["mask"])] = torch.tensor(sample["mask"], dtype=DTYPE)
        rewards[i, sample["turns"][-1]["end"] - 1] = sample["reward"]
    return [sample for _, sample in known], mask, rewards, numpy.array([g for g, _ in known])


def padded(samples, name, longest):
    rows = torch.zeros(len(samples), longest, dtype=DTYPE)
    for i, sample in enumerate(samples):
        rows[i, : len(sample[name])] = torch.tensor(sample[name], dtype=DTYPE)
    return rows


def in_groups(case, rows, mask):
    """Rows of known samples in the shape of the groups, 0 at observations."""
    rows = iter(rows * mask)
    return [
        [None if s["reward"] is None else next(rows)[: len(s["mask"])] for s in group["samples"]]
        for group in case["groups"]
    ]


def with_kl(samples, mask, rewards, coefficient):
    """Rewards less the KL, as verl's apply_kl_penalty does."""
    if coefficient == 0:
        return rewards
    rollout, reference = (padded(samples, name, mask.shape[1]) for name in ("rollout", "reference"))
    return rewards - coefficient * core_algos.kl_penalty(rollout, reference, "k1") * mask


def verl_outcome(function, **options):
    def advantages(case):
        _, mask, rewards, index = batch_of(case)
        result, _ = function(rewards, response_mask=mask, index=index, **options)
        yield VERL, function.__name__, {"advantages": in_groups(case, result, mask)}

    return advantages


def verl_reinforce_plus_plus(case):
    samples, mask, rewards, _ = batch_of(case)
    rewards = with_kl(samples, mask, rewards, case["settings"]["klCoefficient"])
    function = core_algos.compute_reinforce_plus_plus_outcome_advantage
    advantages, _ = function(rewards, response_mask=mask, config=types.SimpleNamespace(gamma=1.0))
    yield VERL, function.__name__, {"advantages": in_groups(case, advantages, mask)}


def verl_remax(case):
    case = {**case, "groups": group_baselines.without_baseline_left_out(case["groups"])}
    _, mask, rewards, index = batch_of(case)
    baselines = torch.tensor([case["groups"][g]["greedy_reward"] for g in index], dtype=DTYPE)
    function = core_algos.compute_remax_outcome_advantage
    advantages, _ = function(rewards, reward_baselines=baselines, response_mask=mask)
    yield VERL, function.__name__, {"advantages": in_groups(case, advantages, mask)}


def verl_gae(case):
    samples, mask, rewards, _ = batch_of(case)
    settings = case["settings"]
    rewards = with_kl(samples, mask, rewards, settings["klCoefficient"])
    function = core_algos.compute_gae_advantage_return
    values = padded(samples, "values", mask.shape[1])
    advantages, returns = function(rewards, values, mask, settings["gamma"], settings["lambda"])
    result = {"returns": in_groups(case, returns, mask)}
    # It always whitens.
    result["advantages"] = in_groups(case, advantages if settings["whiten"] else returns - values, mask)
    yield VERL, function.__name__, result


def verl_gae_twice(case):
    """VAPO is not in verl: its two λ one after the other, a sample at a time, for each has its own."""
    samples, mask, rewards, _ = batch_of(case)
    settings = case["settings"]
    rewards = with_kl(samples, mask, rewards, settings["klCoefficient"])
    values = padded(samples, "values", mask.shape[1])
    function = core_algos.compute_gae_advantage_return
    advantages, returns = [], []
    for row in range(len(samples)):
        only = slice(row, row + 1)
        lambda_ = max(0.0, 1 - 1 / (settings["alpha"] * mask[row].sum().item()))
        of_policy = function(rewards[only], values[only], mask[only], settings["gamma"], lambda_)[1]
        advantages.append(of_policy[0] - values[row])
        returns.append(function(rewards[only], values[only], mask[only], settings["gamma"], 1.0)[1][0])
    advantages = torch.stack(advantages)
    if settings["whiten"]:
        advantages = torch_functional.masked_whiten(advantages, mask)
    result = {"advantages": in_groups(case, advantages, mask), "returns": in_groups(case, torch.stack(returns), mask)}
    yield VERL, f"{function.__name__} with each λ", result


def torchrl_vtrace(case):
    settings = case["settings"]
    if settings["lambda"] != 1 or settings["klCoefficient"] != 0 or settings["whiten"]:
        return
    function = value_functional.vtrace_advantage_estimate
    result = {"advantages": [], "returns": []}
    for group in case["groups"]:
        rows = {"advantages": [], "returns": []}
        for sample in group["samples"]:
            there = [t for t, bit in enumerate(sample["mask"]) if bit]
            advantages = returns = None
            if sample["reward"] is not None:
                column = lambda name: torch.tensor(sample[name], dtype=DTYPE)[there].reshape(1, -1, 1)  # noqa: E731
                values = column("values")
                reward, done = torch.zeros_like(values), torch.zeros_like(values, dtype=torch.bool)
                reward[0, -1], done[0, -1] = sample["reward"], True
                advantages, returns = torch.zeros(2, len(sample["mask"]), dtype=DTYPE)
                advantages[there], returns[there] = (
                    out.flatten()
                    for out in function(
                        settings["gamma"],
                        column("policy"),
                        column("rollout"),
                        values,
                        torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], dim=1),
                        reward,
                        done,
                        rho_thresh=torch.tensor(settings["rhoBar"], dtype=DTYPE),
                        c_thresh=torch.tensor(settings["cBar"], dtype=DTYPE),
                    )
                )
            rows["advantages"].append(advantages)
            rows["returns"].append(returns)
        for name, of_group in rows.items():
            result[name].append(of_group)
    yield TORCHRL, function.__name__, result


def torchrl_vtrace_targets(case):
    """Retrace is not in TorchRL: its targets for states are those of V-trace where λ is 1 and the bounds are the same."""
    if case["settings"]["rhoBar"] == case["settings"]["cBar"]:
        for library, function, result in torchrl_vtrace(case):
            yield library, function, {"returns": result["returns"]}


CREDIT = {
    "grpo": verl_outcome(core_algos.compute_grpo_outcome_advantage),
    "dr-grpo": verl_outcome(core_algos.compute_grpo_outcome_advantage, norm_adv_by_std_in_grpo=False),
    "rloo": verl_outcome(core_algos.compute_rloo_outcome_advantage),
    "reinforce++": verl_reinforce_plus_plus,
    "reinforce++-baseline": verl_outcome(core_algos.compute_reinforce_plus_plus_baseline_outcome_advantage),
    "remax": verl_remax,
    "ppo": verl_gae,
    "vapo": verl_gae_twice,
    "vtrace": torchrl_vtrace,
    "retrace": torchrl_vtrace_targets,
}


# Losses: each gives a scalar of the leaf that the gradient is by, and what of the metrics the library has.


def rows(inputs, values):
    """Tokens [T] or [T, V] as padded sequences [B, L] or [B, L, V]."""
    return torch.nn.utils.rnn.pad_sequence([values[start:end] for start, end in spans(inputs)], batch_first=True)


def stream(inputs, name):
    return rows(inputs, tensor(inputs, name))


AGGREGATION = {"token": "token-mean", "sequence": "seq-mean-token-mean", "dr-grpo": "seq-mean-token-sum-norm"}


def verl_config(settings):
    info = {"loss_scale_factor": settings["maxCompletionTokens"]} if settings.get("aggregation") == "dr-grpo" else {}
    return ActorConfig(settings.get("clipRatioLow"), settings.get("clipRatioHigh"), info)


def verl_importance(inputs, log_ratio, settings):
    """Weights by verl's rollout correction."""
    cap = settings["importanceCap"]
    floor = settings.get("importanceFloor", 1 / cap)
    weights, _ = rollout_corr_helper.compute_rollout_correction_weights(
        log_ratio,
        stream(inputs, "mask"),
        rollout_is_threshold=cap if settings["importance"] == "truncated" else f"{floor}_{cap}",
    )
    return weights


def verl_has(settings):
    """It truncates from above alone, and its masks are of the weight."""
    importance = settings["importance"]
    return importance != "difference" and not (importance == "truncated" and "importanceFloor" in settings)


def verl_surrogate(inputs, settings):
    if not verl_has(settings):
        return
    logprobs, _ = token_logprobs(inputs, settings)
    logprobs, mask = rows(inputs, logprobs), stream(inputs, "mask")
    old = stream(inputs, "old") if "old" in inputs else logprobs.detach()
    weights = None
    if settings["importance"] != "none":
        weights = verl_importance(inputs, old - stream(inputs, "rollout"), settings)
    mode, config = AGGREGATION[settings["aggregation"]], verl_config(settings)
    loss, metrics = core_algos.compute_policy_loss_vanilla(
        old, logprobs, stream(inputs, "advantages"), mask, mode, config, weights
    )
    if settings["entropyCoefficient"] > 0:
        entropy = torch_functional.entropy_from_logits(rows(inputs, inputs["logits"] / settings["temperature"]))
        loss = loss - settings["entropyCoefficient"] * core_algos.agg_loss(
            entropy, mask, mode, **config.global_batch_info
        )
    if settings["beta"] > 0:
        kl = core_algos.kl_penalty(logprobs, stream(inputs, "reference"), settings.get("klEstimator", "k3"))
        loss = loss + settings["beta"] * core_algos.agg_loss(kl, mask, mode, **config.global_batch_info)
    yield VERL, "compute_policy_loss_vanilla", {"loss": loss, "clippedShare": metrics["actor/pg_clipfrac"]}


def verl_gspo(inputs, settings):
    logprobs, _ = token_logprobs(inputs, settings)
    loss, metrics = core_algos.compute_policy_loss_gspo(
        stream(inputs, "old"),
        rows(inputs, logprobs),
        stream(inputs, "advantages"),
        stream(inputs, "mask"),
        config=verl_config(settings),
    )
    yield VERL, "compute_policy_loss_gspo", {"loss": loss, "clippedShare": metrics["actor/pg_clipfrac"]}


def verl_cispo(inputs, settings):
    """With a lower bound of 0, for the paper has none in use."""
    logprobs, _ = token_logprobs(inputs, settings)
    loss, metrics = core_algos.compute_policy_loss_cispo(
        stream(inputs, "old"),
        rows(inputs, logprobs),
        stream(inputs, "advantages"),
        stream(inputs, "mask"),
        config=verl_config({**settings, "clipRatioLow": 1.0}),
    )
    yield VERL, "compute_policy_loss_cispo", {"loss": loss, "clippedShare": metrics["actor/pg_clipfrac"]}


def verl_reinforce(inputs, settings):
    if not verl_has(settings):
        return
    logprobs, _ = token_logprobs(inputs, settings)
    logprobs = rows(inputs, logprobs)
    rollout = stream(inputs, "rollout") if "rollout" in inputs else logprobs.detach()
    weights = None
    if settings["importance"] != "none":
        weights = verl_importance(inputs, logprobs.detach() - rollout, settings)
    loss, _ = core_algos.compute_policy_loss_reinforce(
        rollout,
        logprobs,
        stream(inputs, "advantages"),
        stream(inputs, "mask"),
        AGGREGATION[settings["aggregation"]],
        verl_config(settings),
        weights,
    )
    yield VERL, "compute_policy_loss_reinforce", {"loss": loss}


def verl_value(inputs, settings):
    loss, clipped = core_algos.compute_value_loss(
        rows(inputs, inputs["predicted"]),
        stream(inputs, "returns"),
        stream(inputs, "values"),
        stream(inputs, "mask"),
        settings["clip"] or 1e9,
        AGGREGATION[settings["aggregation"]],
    )
    yield VERL, "compute_value_loss", {"loss": loss, "clippedShare": clipped}


class Accelerator:
    """Of one process."""

    device, num_processes, sync_gradients = torch.device("cpu"), 1, True

    def gather(self, value):
        return value

    gather_for_metrics = gather

    def reduce(self, value, reduction):
        return value


def trainer(**members):
    """What TRL's loss methods read of their trainer, in training, without gradient accumulation."""
    return types.SimpleNamespace(
        accelerator=Accelerator(),
        model=types.SimpleNamespace(training=True),
        aux_loss_enabled=False,
        current_gradient_accumulation_steps=1,
        precompute_ref_logps=True,
        _metrics=defaultdict(lambda: defaultdict(list)),
        _total_train_tokens=0,
        _tp_size=1,
        **members,
    )


def trl_grpo(inputs, settings, *, loss_type, level="token", **members):
    """GRPOTrainer._compute_loss on log-probs and entropies made of the case's logits."""
    logprobs, distribution = token_logprobs(inputs, settings)
    logprobs = rows(inputs, logprobs)
    entropies = rows(inputs, -(distribution.exp() * distribution).sum(-1))
    mask = stream(inputs, "mask")
    of_trainer = trainer(
        loss_type=loss_type,
        importance_sampling_level=level,
        beta=settings.get("beta", 0.0),
        epsilon_low=settings.get("clipRatioLow", 0.0),
        max_completion_length=settings.get("maxCompletionTokens"),
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        vllm_importance_sampling_correction=True,
        use_adaptive_entropy=False,
        entropy_coef=settings.get("entropyCoefficient", 0.0),
        _entropy_bonus_enabled=settings.get("entropyCoefficient", 0.0) > 0,
        args=types.SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1),
        _get_per_token_logps_and_entropies=lambda *_, **__: (logprobs, entropies, None),
        **members,
    )
    given = {
        "prompt_ids": torch.zeros(len(mask), 1),
        "prompt_mask": torch.ones(len(mask), 1),
        "completion_ids": torch.zeros_like(mask),
        "completion_mask": mask,
        "advantages": stream(inputs, "advantages"),
        "num_items_in_batch": mask.sum(),
    }
    for name, theirs in (("old", "old_per_token_logps"), ("reference", "ref_per_token_logps")):
        if name in inputs:
            given[theirs] = stream(inputs, name)
    if of_trainer.use_vllm:
        # The clamp and the mask are of the method that samples.
        old = given.get("old_per_token_logps", logprobs.detach())
        weight = torch.exp(old - stream(inputs, "rollout"))
        cap = settings["importanceCap"]
        floor = settings.get("importanceFloor", 1 / cap)
        outside = (weight < floor) | (weight > cap)
        truncated = settings["importance"] == "truncated"
        bounded = weight.clamp(min=settings.get("importanceFloor"), max=cap)
        given["importance_sampling_ratio"] = bounded if truncated else weight.masked_fill(outside, 0.0)
    return GRPOTrainer._compute_loss(of_trainer, None, given), of_trainer._metrics["train"]


def trl_surrogate(inputs, settings):
    if settings.get("klEstimator") == "k2" or settings["importance"] == "difference":
        return  # TRL has k3 alone, and DPPO in another trainer.
    loss_type = {"token": "dapo", "sequence": "grpo", "dr-grpo": "dr_grpo"}[settings["aggregation"]]
    loss, metrics = trl_grpo(
        inputs,
        settings,
        loss_type=loss_type,
        epsilon_high=settings["clipRatioHigh"],
        use_vllm=settings["importance"] != "none",
    )
    result = {"loss": loss, "clippedShare": metrics["clip_ratio/region_mean"][0]}
    if settings["beta"] > 0:
        result["klMean"] = metrics["kl"][0]
    yield TRL, f"GRPOTrainer._compute_loss ({loss_type})", result


def trl_gspo(inputs, settings):
    loss, _ = trl_grpo(
        inputs, settings, loss_type="grpo", level="sequence", epsilon_high=settings["clipRatioHigh"], use_vllm=False
    )
    yield TRL, "GRPOTrainer._compute_loss (sequence level)", {"loss": loss}


def trl_cispo(inputs, settings):
    """Its epsilon_high is the bound itself, where the paper's is what it lies above 1."""
    loss, _ = trl_grpo(
        inputs, settings, loss_type="cispo", epsilon_high=1 + settings["clipRatioHigh"], use_vllm=False
    )
    yield TRL, "GRPOTrainer._compute_loss (cispo)", {"loss": loss}


def behind_a_prompt(inputs, values, order):
    """Sequences in this order with one prompt token before each [B, 1 + L]."""
    padded = rows(inputs, values)[order]
    return torch.cat([torch.zeros(len(order), 1, dtype=padded.dtype), padded], dim=1)


def trl_model(inputs, settings, order):
    """A model that answers with the case's log-probs, 0 where a label is left out, as TRL's fused head does."""
    logprobs, _ = token_logprobs(inputs, settings)
    of_labels = rows(inputs, logprobs * tensor(inputs, "mask"))[order]
    unused = torch.zeros_like(of_labels)
    answer = types.SimpleNamespace(log_probs=of_labels, entropy=unused, mean_logits=unused, is_top1=unused.bool())
    return lambda **_: answer


def trl_dpo(inputs, settings):
    if settings["labelSmoothing"] > 0:
        return
    order = [pair[0] for pair in inputs["pairs"]] + [pair[1] for pair in inputs["pairs"]]
    mask = behind_a_prompt(inputs, tensor(inputs, "mask"), order)
    reference = rows(inputs, tensor(inputs, "reference"))[order].sum(1)
    of_trainer = trainer(
        beta=settings["beta"],
        ld_alpha=None,
        f_divergence_type="reverse_kl",
        loss_types=[settings["variant"]],
        loss_weights=[1.0],
        label_smoothing=0.0,
        use_weighting=False,
    )
    given = {
        "input_ids": torch.zeros_like(mask),
        "attention_mask": torch.ones_like(mask),
        "completion_mask": mask,
        "ref_chosen_logps": reference[: len(inputs["pairs"])],
        "ref_rejected_logps": reference[len(inputs["pairs"]) :],
    }
    loss = DPOTrainer._compute_loss(of_trainer, trl_model(inputs, settings, order), given, False)
    yield TRL, f"DPOTrainer._compute_loss ({settings['variant']})", {"loss": loss}


def trl_kto(inputs, settings):
    if "mismatched" not in inputs:
        return
    order = list(range(len(inputs["desirable"])))
    mask = behind_a_prompt(inputs, tensor(inputs, "mask"), order)
    of_trainer = trainer(
        beta=settings["beta"],
        loss_type="kto",
        calculate_KL=True,
        desirable_weight=settings["lambdaD"],
        undesirable_weight=settings["lambdaU"],
        _compute_kl_logps=lambda *_: tensor(inputs["mismatched"], "policy"),
    )
    given = {
        "input_ids": torch.zeros_like(mask),
        "attention_mask": torch.ones_like(mask),
        "completion_mask": mask,
        "label": torch.tensor(inputs["desirable"]),
        "ref_logps": rows(inputs, tensor(inputs, "reference")).sum(1),
        "ref_KL_logps": tensor(inputs["mismatched"], "reference"),
    }
    loss = KTOTrainer._compute_loss(of_trainer, trl_model(inputs, settings, order), given, False)
    yield TRL, "KTOTrainer._compute_loss", {"loss": loss, "z0": of_trainer._metrics["train"]["kl"][0]}


def trl_distillation(inputs, settings):
    """Its β 0 and 1 are the two KLs, not the limits of its divergence, which are 0."""
    if len(inputs["teachers"]) > 1 or settings["aggregation"] != "token":
        return
    beta = {"forward-kl": 0.0, "reverse-kl": 1.0, "jsd": settings.get("beta")}[settings["divergence"]]
    labels = torch.where(torch.tensor(inputs["mask"]) == 1, torch.tensor(inputs["targets"]), -100)
    loss = GKDTrainer.generalized_jsd_loss(
        inputs["logits"].unsqueeze(0),
        tensor(inputs["teachers"][0], "logits").unsqueeze(0),
        labels=labels.unsqueeze(0),
        beta=beta,
        temperature=settings["temperature"],
    )
    yield TRL, f"GKDTrainer.generalized_jsd_loss (beta {beta})", {"loss": loss}


def stale(case, logits):
    """A step on samples of another policy: credit of one library, then verl's loss, in its decoupled form."""
    settings, groups = case["settings"], case["groups"]
    method = settings.get("credit", "vtrace")
    if settings.get("target") == "retrace":
        return
    samples = [sample for group in groups for sample in group["samples"] if sample["reward"] is not None]
    laid = {name: [x for sample in samples for x in sample[name]] for name in ("mask", "policy", "rollout", "targets")}
    offsets = numpy.cumsum([0, *(len(sample["mask"]) for sample in samples)]).tolist()
    for library, function, credit in CREDIT[method](case):
        advantages = torch.cat([a for group in credit["advantages"] for a in group if a is not None])
        inputs = {**laid, "offsets": offsets, "logits": logits, "advantages": advantages, "old": laid["policy"]}
        of_loss = {"importance": "none", **settings, "temperature": 1.0, "entropyCoefficient": 0.0, "beta": 0.0}
        for _, loss, result in verl_surrogate(inputs, of_loss):
            names = library if library == VERL else f"{library}, {VERL}"
            yield names, f"{function}, {loss}", {"loss": result["loss"]}


LOSSES = {
    "clipped-surrogate": (verl_surrogate, trl_surrogate),
    "gspo": (verl_gspo, trl_gspo),
    "cispo": (verl_cispo, trl_cispo),
    "reinforce": (verl_reinforce,),
    "value": (verl_value,),
    "distillation": (trl_distillation,),
    "dpo": (trl_dpo,),
    "kto": (trl_kto,),
}
