"""Seeded inputs. Every number but a reward is a multiple of 1/1024, exact in float32 and short in JSON. What lies at
observation tokens is as plausible as the rest, so that reading it shows."""

import random


def short(number):
    return round(number * 1024) / 1024


class Inputs:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def normal(self, mean, deviation):
        return short(self.random.gauss(mean, deviation))

    def logprobs(self, length):
        return [short(-min(6.0, 0.05 + self.random.expovariate(1.1))) for _ in range(length)]

    def near(self, logprobs, deviation):
        """Other weights' log-probs of the same tokens."""
        return [short(min(-1 / 1024, value + self.random.gauss(0, deviation))) for value in logprobs]

    def sample(self, reward, *, turns=None, streams=(), ends="turn"):
        """`ends`: after a whole turn, or with the observation that followed it, as where a budget ran out."""
        mask, spans = [], []
        for k in range(turns or self.random.randint(1, 5)):
            if k > 0:
                mask += [0] * self.random.choice([0, 1, 2, 3])
            length = self.random.randint(1, 5)
            spans.append({"start": len(mask), "end": len(mask) + length})
            mask += [1] * length
        if ends == "observation":
            mask += [0] * self.random.randint(1, 3)
        made = {"mask": mask, "turns": spans, "reward": reward}
        rollout = self.logprobs(len(mask))
        for name in streams:
            if name == "rollout":
                made["rollout"] = rollout
            elif name == "reference":
                made["reference"] = self.near(rollout, 0.3)
            elif name == "policy":
                made["policy"] = self.near(rollout, 0.4)
            elif name == "later-policy":
                made["policy"] = self.near(rollout, 1.5)
            elif name == "values":
                made["values"] = [self.normal(0.4, 0.3) for _ in mask]
            elif name == "turn_rewards":
                made["turn_rewards"] = [self.random.choice([0.0, 0.25, 0.5, 1.0, -0.25]) for _ in spans]
            elif name == "states":
                made["states"] = ["start"] + [self.random.choice(["red", "green", "blue"]) for _ in spans[1:]]
            else:
                raise ValueError(name)
        return made

    def tree(self, size, *, roots, left_out=()):
        """A task's samples, most of which go on from where others stood: three actions of one or two tokens, two
        observations. Rewards are of a thousand values, so that hardly two are alike."""
        samples = []
        for i in range(size):
            source = self.random.choice(samples) if i >= roots else None
            inherited = self.random.randrange(len(source["turns"])) if source else 0
            start = source["turns"][inherited]["start"] if inherited else 0
            tokens = source["tokens"][:start] if source else []
            mask = [0] * start
            turns = source["turns"][:inherited] if source else []
            for k in range(inherited, inherited + self.random.randint(1, 3)):
                if k > inherited:
                    observation = self.random.choice([[8], [8, 9]])
                    tokens = tokens + observation
                    mask = mask + [0] * len(observation)
                drawn = self.random.choice([[1], [2], [2, 3]])
                turns = turns + [{"start": len(tokens), "end": len(tokens) + len(drawn)}]
                tokens = tokens + drawn
                mask = mask + [1] * len(drawn)
            samples.append(
                {
                    "tokens": tokens,
                    "mask": mask,
                    "turns": turns,
                    "inherited": inherited,
                    "reward": None if i in left_out else short(self.random.uniform(-0.5, 1)),
                    "turn_rewards": [short(self.random.uniform(0, 0.5)) for _ in turns],
                }
            )
        return {"task": "task-0", "samples": samples}

    def groups(self, rewards, *, streams=(), turns=None):
        """One group for each list of rewards; None is a reward that is left out. Every third sample ends with an
        observation."""
        groups = []
        for g, of_group in enumerate(rewards):
            samples = [
                self.sample(reward, turns=turns, streams=streams, ends="observation" if i % 3 == 2 else "turn")
                for i, reward in enumerate(of_group)
            ]
            groups.append({"task": f"task-{g}", "samples": samples})
        return groups
