"""Search over turns, by enumeration: no tree is built, whatever is asked of a state is counted over all samples.

A sample also has `tokens` [T] and `inherited`: so many of its first turns are another sample's.
"""

import math

from .samples import known


def history(sample, turn):
    """The tokens before a turn, as a key; None where the sample has not so many turns."""
    if turn >= len(sample["turns"]):
        return None
    return tuple(sample["tokens"][: sample["turns"][turn]["start"] if turn else 0])


def action(sample, turn):
    """The tokens up to the end of a turn, as a key: of a state and an action in it."""
    return tuple(sample["tokens"][: sample["turns"][turn]["end"]])


def through(samples, key):
    """The samples that took an action."""
    return [s for s in samples if any(action(s, k) == key for k in range(len(s["turns"])))]


def mean_reward(samples):
    return sum(s["reward"] for s in samples) / len(samples)


def drawn(samples, key):
    """(sample, turn) of the first sample that drew an action itself; None where all inherited it."""
    places = [
        (i, k)
        for i, s in enumerate(samples)
        for k in range(s["inherited"], len(s["turns"]))
        if action(s, k) == key
    ]
    return places[0] if places else None


def agentq(groups, settings):
    """Putta et al. 2024 (Agent Q, arXiv 2408.07199): Q(h, a) = α Q_search(h, a) + (1 − α) Q_process(h, a); pairs of actions
    of one history whose values differ by more than a threshold. The best of a history goes with its worst, and so
    inwards; of a task those that differ most. Turns count from the sample's first own one."""

    def of_group(group):
        places = [i for i, s in enumerate(group["samples"]) if s["reward"] is not None]
        samples = known(group)
        histories = {history(s, k) for s in samples for k in range(len(s["turns"]))}
        pairs = []
        for h in sorted(histories):
            keys = {action(s, k) for s in samples for k in range(len(s["turns"])) if history(s, k) == h}
            values = []
            for key in keys:
                place = drawn(samples, key)
                if place is None:
                    continue
                i, k = place
                paid = samples[i]["turn_rewards"][k]
                value = settings["alpha"] * mean_reward(through(samples, key)) + (1 - settings["alpha"]) * paid
                values.append((value, [places[i], k - samples[i]["inherited"]]))
            values.sort(key=lambda entry: -entry[0])
            while len(values) > 1 and values[0][0] - values[-1][0] > settings["margin"]:
                best, worst = values.pop(0), values.pop()
                pairs.append((best[0] - worst[0], {"better": best[1], "worse": worst[1]}))
        pairs.sort(key=lambda entry: -entry[0])
        return [pair for _, pair in pairs[: settings["pairsPerTask"]]]

    return {"pairs": [of_group(group) for group in groups]}


def branches(groups, settings):
    """Where the next `count` samples of each task branch off, as [sample, turn]: UCB1 (Auer et al. 2002) in Agent Q's form,
    value + c √(ln N / (1 + n)), from the root down to a state with fewer than max(width, ⌊√N⌋) draws (progressive widening,
    Couëtoux et al. 2011, k = ⌊N^α⌋ with α = 1/2), or below which all samples have ended. A chosen branch counts as a visit,
    and a draw, for those chosen after it."""

    def of_group(group):
        places = [i for i, s in enumerate(group["samples"]) if s["reward"] is not None]
        samples = known(group)
        expected_visits, expected_draws = {}, {}

        def draws(h):
            own = sum(
                1 for s in samples for k in range(s["inherited"], len(s["turns"])) if history(s, k) == h
            )
            return own + expected_draws.get(h, 0)

        def actions(h):
            """In the order in which they were seen first."""
            return list(
                dict.fromkeys(action(s, k) for s in samples for k in range(len(s["turns"])) if history(s, k) == h)
            )

        def next_states(key):
            return list(
                dict.fromkeys(
                    history(s, k + 1)
                    for s in samples
                    for k in range(len(s["turns"]) - 1)
                    if action(s, k) == key
                )
            )

        def visits(key):
            return len(through(samples, key)) + expected_visits.get(key, 0)

        chosen = []
        for _ in range(settings["count"]):
            h = ()
            while True:
                n = sum(visits(key) for key in actions(h)) + expected_draws.get(h, 0)
                leading = [key for key in actions(h) if next_states(key)]
                if draws(h) < max(settings["width"], math.isqrt(n)) or not leading:
                    break
                bounds = [
                    mean_reward(through(samples, key))
                    + settings["exploration"] * math.sqrt(math.log(n) / (1 + visits(key)))
                    for key in leading
                ]
                best = leading[bounds.index(max(bounds))]
                expected_visits[best] = expected_visits.get(best, 0) + 1
                h = next_states(best)[0]
            expected_draws[h] = expected_draws.get(h, 0) + 1
            chosen.append(
                next(
                    [places[i], k]
                    for i, s in enumerate(samples)
                    for k in range(len(s["turns"]))
                    if history(s, k) == h
                )
            )
        return chosen

    return {"branches": [of_group(group) for group in groups]}
