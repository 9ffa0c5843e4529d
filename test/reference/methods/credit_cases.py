"""The cases of credit.json: method, settings, groups. Among the groups of each method are one with rewards that are left
out, one of a single sample, and one whose rewards are all equal."""

from batches import Inputs

MIXED = [[1, 0, 1, 0], [0.5, None, 1, 0.25]]
EQUAL = [[1, 1, 1], [0.1, 0.7, 0.4, 0.4]]
ALONE = [[0.75], [1, 0, 0, 0.5]]
ALONE_AMONG_LEFT_OUT = [[None, 0.75, None], [None, None], [0.25, 1, None]]
FOUR = {"mixed": MIXED, "equal": EQUAL, "alone": ALONE, "left out": ALONE_AMONG_LEFT_OUT}


def case(method, name, settings, groups):
    return {"name": f"{method}: {name}", "method": method, "settings": settings, "groups": groups}


def group_baselines():
    for seed, (name, rewards) in enumerate(FOUR.items()):
        yield case("grpo", name, {"scale": "group"}, Inputs(100 + seed).groups(rewards))
        yield case("dr-grpo", name, {"scale": "none"}, Inputs(110 + seed).groups(rewards))
        yield case("rloo", name, {}, Inputs(120 + seed).groups(rewards))
    yield case("grpo", "one token, five turns", {"scale": "group"}, Inputs(130).groups([[0.3, 0.9, -0.2]], turns=5))
    streams = ("rollout", "reference")
    for seed, (name, rewards) in enumerate(FOUR.items()):
        settings = {"klCoefficient": [0.05, 0.0, 0.2, 0.1][seed]}
        yield case("reinforce++", name, settings, Inputs(140 + seed).groups(rewards, streams=streams))
        yield case("reinforce++-baseline", name, {}, Inputs(150 + seed).groups(rewards))
    yield case("reinforce++", "nothing differs", {"klCoefficient": 0.0}, Inputs(160).groups([[1, 1]], streams=streams))
    for seed, (name, rewards) in enumerate(FOUR.items()):
        groups = Inputs(170 + seed).groups(rewards)
        for g, group in enumerate(groups):
            group["greedy_reward"] = [0.5, 1, 0][(g + seed) % 3]
        if name == "mixed":
            groups.append({**Inputs(180).groups([[1, 0]])[0], "task": "task-2", "greedy_reward": None})
        yield case("remax", name, {}, groups)


def critics():
    streams = ("rollout", "reference", "values")
    small = [[1, 0, None], [0.5, 1]]
    for seed, settings in enumerate(
        [
            {"gamma": 1.0, "lambda": 1.0, "klCoefficient": 0.0, "whiten": False},
            {"gamma": 1.0, "lambda": 0.95, "klCoefficient": 0.05, "whiten": False},
            {"gamma": 0.97, "lambda": 0.9, "klCoefficient": 0.1, "whiten": True},
            {"gamma": 0.9, "lambda": 0.0, "klCoefficient": 0.02, "whiten": True},
        ]
    ):
        name = f"γ {settings['gamma']}, λ {settings['lambda']}" + (", whitened" if settings["whiten"] else "")
        yield case("ppo", name, settings, Inputs(200 + seed).groups(small, streams=streams))
    yield case(
        "ppo",
        "a batch of one, left out ones beside it",
        {"gamma": 0.99, "lambda": 0.95, "klCoefficient": 0.05, "whiten": True},
        Inputs(209).groups([[None, 1, None]], streams=streams),
    )
    for seed, settings in enumerate(
        [
            {"gammaTurn": 0.95, "lambdaTurn": 0.9, "gammaToken": 1.0, "lambdaToken": 0.95, "klCoefficient": 0.0},
            {"gammaTurn": 0.9, "lambdaTurn": 0.9, "gammaToken": 0.99, "lambdaToken": 0.9, "klCoefficient": 0.05},
            {"gammaTurn": 1.0, "lambdaTurn": 1.0, "gammaToken": 1.0, "lambdaToken": 1.0, "klCoefficient": 0.0},
            {"gammaTurn": 0.8, "lambdaTurn": 0.5, "gammaToken": 0.95, "lambdaToken": 0.7, "klCoefficient": 0.1},
        ]
    ):
        whiten = seed == 3
        yield case(
            "bi-level-gae",
            ["γ of turns 0.95", "KL in the reward", "no discount", "whitened"][seed],
            {**settings, "whiten": whiten},
            Inputs(220 + seed).groups(small, streams=(*streams, "turn_rewards"), turns=None if seed else 4),
        )
    for seed, (name, alpha) in enumerate([("α 1", 1.0), ("α 0.5", 0.5), ("α 0.05, held at 0", 0.05)]):
        settings = {"alpha": alpha, "gamma": 1.0, "klCoefficient": 0.0 if seed == 0 else 0.05, "whiten": seed == 1}
        yield case("vapo", name, settings, Inputs(240 + seed).groups(small, streams=streams, turns=4))


def off_policy():
    small = [[1, 0, None], [0.5, 1]]
    for seed, (rho, c, lambda_, gamma) in enumerate(
        [(1.0, 1.0, 1.0, 1.0), (2.0, 1.0, 0.95, 0.99), (1.5, 0.8, 0.9, 0.95), (1.2, 0.9, 1.0, 0.97)]
    ):
        settings = {"rhoBar": rho, "cBar": c, "lambda": lambda_, "gamma": gamma, "klCoefficient": 0.0, "whiten": False}
        groups = Inputs(260 + seed).groups(small, streams=("rollout", "policy", "values"))
        for method in ("vtrace", "retrace"):
            yield case(method, f"ρ̄ {rho}, c̄ {c}, λ {lambda_}, γ {gamma}", settings, groups)
    settings = {"rhoBar": 1.0, "cBar": 1.0, "lambda": 1.0, "gamma": 0.98, "klCoefficient": 0.1, "whiten": True}
    groups = Inputs(269).groups(small, streams=("rollout", "policy", "reference", "values"))
    yield case("vtrace", "whitened, KL in the reward", settings, groups)
    settings = {"rhoBar": 1.5, "cBar": 1.0, "lambda": 0.95, "gamma": 0.99, "klCoefficient": 0.05, "whiten": True}
    groups = Inputs(270).groups(small, streams=("rollout", "later-policy", "reference", "values"))
    for method in ("vtrace", "retrace"):
        yield case(method, "of another policy, whitened, KL in the reward", settings, groups)


def turns():
    rewards = [[1, 0, 1, None, 0], [0.5, 0.5, 0.5]]
    for seed, (name, settings, streams) in enumerate(
        [
            ("with the deviation", {"omega": 1.0, "gamma": 0.95, "scale": "group"}, ("states",)),
            ("without the deviation", {"omega": 1.0, "gamma": 0.95, "scale": "none"}, ("states",)),
            ("ω 0.5, process rewards", {"omega": 0.5, "gamma": 0.9, "scale": "group"}, ("states", "turn_rewards")),
            ("no discount, process rewards", {"omega": 2.0, "gamma": 1.0, "scale": "none"}, ("states", "turn_rewards")),
        ]
    ):
        yield case("gigpo", name, settings, Inputs(300 + seed).groups(rewards, streams=streams))
    yield case(
        "gigpo",
        "alone",
        {"omega": 1.0, "gamma": 0.95, "scale": "group"},
        Inputs(309).groups([[1], [None, 0], [0, 1]], streams=("states",)),
    )
    for seed, (name, settings) in enumerate(
        [
            ("DeepSeekMath", {"over": "group", "outcomeWeight": 0.0, "processWeight": 1.0, "gamma": 1.0}),
            ("with the outcome", {"over": "group", "outcomeWeight": 1.0, "processWeight": 0.5, "gamma": 0.9}),
            ("the same turn", {"over": "turn", "outcomeWeight": 1.0, "processWeight": 1.0, "gamma": 1.0}),
            ("the same turn, not what follows", {"over": "turn", "outcomeWeight": 0.5, "processWeight": 0.5, "gamma": 0.0}),
        ]
    ):
        yield case("process", name, settings, Inputs(320 + seed).groups(rewards, streams=("turn_rewards",)))
    yield case(
        "process",
        "alone",
        {"over": "group", "outcomeWeight": 1.0, "processWeight": 1.0, "gamma": 1.0},
        Inputs(329).groups([[1], [None, 0], [0, 1]], streams=("turn_rewards",)),
    )


def filters():
    rewards = [[1, 1, 1], [1, 0, 1], [0, 0], [1, None, 1], [None, 0.5], [None, None], [0.2, 0.4], [1, 0, 0, 0]]
    by = {"by": "reward"}
    yield case("dynamic-sampling", "eight groups", by, Inputs(400).groups(rewards, turns=1))
    yield case("dynamic-sampling", "none", by, Inputs(401).groups([[0, 0], [0.1, 0.1, 0.1], [1]], turns=1))
    yield case("dynamic-sampling", "all", by, Inputs(402).groups([[0, 1, None], [0.1, 0.1, 0.2]], turns=1))
    by = {"by": "correctness"}
    yield case("dynamic-sampling", "eight groups, by correctness", by, Inputs(403).groups(rewards, turns=1))
    shaped = [[0, 0.1, 0.2], [1, 0.2, 0], [0.2, None, 1], [1, None], [1, 1, 1]]
    yield case("dynamic-sampling", "shaped, by correctness", by, Inputs(404).groups(shaped, turns=1))
    rewards = [[1, 0, 0, 0], [1, 1, 1], [1, 0, 1, 0], [0.4, 0.6], [None, 1, 0.9], [0.2, 0.8, None], [None, 1, None]]
    for seed, keep in enumerate([0.25, 0.5, 0.75, 1.0]):
        yield case("top-deviation", f"keep {keep}", {"keep": keep}, Inputs(410 + seed).groups(rewards, turns=1))
    for seed, counts in enumerate(["sampled", "completion", "sampled"]):
        settings = {"maxTokens": [9, 14, 6][seed], "cacheTokens": [4, 8, 6][seed], "counts": counts}
        yield case(
            "soft-overlong", f"{counts}, {settings['maxTokens']}", settings, Inputs(420 + seed).groups([*MIXED, [1, 1]])
        )


def trees():
    shapes = [(6, 2, ()), (9, 3, (1,)), (14, 4, (0, 5)), (24, 4, ()), (3, 3, (0, 1, 2))]
    for seed, (size, roots, left_out) in enumerate(shapes):
        groups = [Inputs(400 + 10 * seed + g).tree(size, roots=roots, left_out=left_out) for g in range(2)]
        name = f"{size} samples, {roots} of them roots, {len(left_out)} left out"
        settings = {"alpha": [1.0, 0.6, 0.8, 1.0, 1.0][seed], "margin": [0.0, 0.1, 0.05, 0.3, 0.0][seed]}
        yield case("agentq", name, {**settings, "pairsPerTask": [8, 8, 3, 4, 8][seed]}, groups)
        if left_out != (0, 1, 2):
            settings = {"width": 2 + seed % 2, "exploration": [0.5, 0.0, 2.0, 0.3][seed], "count": [3, 4, 8, 16][seed]}
            yield case("tree-search", name, settings, groups)


def cases():
    for family in (group_baselines, critics, off_policy, turns, filters, trees):
        yield from family()
