"""Token losses against the reference numbers of test/reference/methods: value, gradient by the logits and what was clipped."""

import json
import unittest
from pathlib import Path

import torch

from batch import Batch
from losses import loss_of

ROOT = Path(__file__).resolve().parents[2]

RULES = {"truncated": "truncate", "masked": "mask", "difference": "difference"}
KINDS = {"clipped-surrogate": "clipped", "cispo": "cispo", "reinforce": "reinforce"}


def objective_of(case: dict) -> dict:
    settings = {"temperature": 1.0, "aggregation": "token", "maxCompletionTokens": 1, "beta": 0.0, **case["settings"]}
    rule = settings.get("importance", "none")
    corrects = {"importanceCap": 0} if rule == "none" else {"importanceRule": RULES[rule]}
    bonus = {"entropyBonus": settings.get("entropyCoefficient", 0)}
    return {**settings, **corrects, **bonus, "kind": KINDS[case["method"]], "topK": 0}


class Reference(unittest.TestCase):
    def test_value_gradient_and_clip_are_those_of_the_papers(self):
        cases = json.loads((ROOT / "test" / "reference" / "methods" / "losses.json").read_text())["cases"]
        own = [case for case in cases if case["method"] in KINDS]
        self.assertGreater(len(own), 25)
        for case in own:
            with self.subTest(case["name"]):
                self.compare(case, objective_of(case))

    def compare(self, case: dict, objective: dict) -> None:
        loss = loss_of(objective)
        of = {name: torch.tensor(case[name], dtype=torch.float64) for name in ("advantages", "old", "rollout", "reference") if name in case}
        mask = torch.tensor(case["mask"], dtype=torch.float64)
        batch = Batch(torch.tensor(case["targets"]), case["offsets"], mask, streams=of)
        logits = torch.tensor(case["logits"], dtype=torch.float64, requires_grad=True)
        log_probs = torch.log_softmax(logits / objective["temperature"], -1)
        logprobs = log_probs.gather(1, batch.tokens[:, None])[:, 0] * mask
        weights = loss.weights(batch, list(range(len(batch)))).double()
        result = loss.compute({**of, "logprobs": logprobs, "weights": weights})
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        value = result.loss - loss.entropy_bonus * (entropy * weights).sum()
        value.backward()
        expected = case["expected"]
        self.assertAlmostEqual(float(value.detach()), expected["loss"], 6)
        gradient = torch.tensor(expected["gradient"], dtype=torch.float64).flatten()
        apart = (logits.grad.flatten() - gradient).abs().max()
        self.assertLess(float(apart), 1e-6 * max(1.0, float(gradient.abs().max())))
        if "clipped" in expected:
            self.assertEqual((result.clipped.double() * mask).tolist(), expected["clipped"])


if __name__ == "__main__":
    unittest.main()
