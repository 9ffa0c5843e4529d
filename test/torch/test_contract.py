"""The Python side of the golden files in test/golden/learner; the other side is test/integration/torch/contract.test.ts."""

import json
import math
import re
import unittest
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM

import checkpoint
import learner
import temporal
from adam import Adam
from batch import Batch, decode
from fault import Fault
from learner import Learner, initial_adapter
from losses import loss_of
from objects import json_bytes, ref_of
from random_numbers import normal, philox, random_key, uniform
from ranks import Ranks
from step import effective_samples, gap, gap_by_staleness

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
SOURCES = Path(learner.__file__).resolve().parent


def golden(name: str):
    return json.loads((GOLDEN / "learner" / name).read_bytes())


class Folder:
    """A store of the golden checkpoints, which nothing may be written to but what is there."""

    def __init__(self) -> None:
        root = GOLDEN / "learner" / "checkpoints"
        self.files = {f"runs/golden/checkpoints/{f.relative_to(root)}": f.read_bytes() for f in root.rglob("*") if f.is_file()}

    def get(self, ref: dict) -> bytes:
        data = self.files[ref["key"]]
        assert ref_of(ref["key"], data) == ref
        return data

    def get_json(self, ref: dict):
        return json.loads(self.get(ref))

    def ref(self, folder: str, version: str) -> dict:
        key = next(key for key in self.files if f"/{folder}" in key and key.endswith("manifest.json"))
        return {"manifest": ref_of(key, self.files[key]), "weights": version, "step": 0}


class Randomness(unittest.TestCase):
    def test_philox_is_that_of_the_paper(self):
        for vector in golden("random.json")["philox"]:
            low, high, *rest = vector["counter"]
            if rest != [0, 0]:
                continue
            counter = np.array([low | high << 32], dtype=np.uint64)
            words = philox((vector["key"]["k0"], vector["key"]["k1"]), counter)
            self.assertEqual([int(word[0]) for word in words], vector["words"])

    def test_keys_and_draws_are_those_of_the_other_side(self):
        for stream in golden("random.json")["streams"]:
            key = random_key(*stream["path"])
            self.assertEqual(list(key), stream["key"])
            self.assertEqual(uniform(key, 4).tolist(), stream["uniform"])
            self.assertEqual(uniform(key, 1, 2**40 + 7).tolist(), [stream["late"]])
            np.testing.assert_allclose(normal(key, 4), stream["normal"], rtol=1e-12)

    def test_a_fresh_adapter_is_that_of_the_other_side_to_the_bit(self):
        given = golden("random.json")["adapter"]
        base = {name: torch.zeros(shape) for name, shape in given["weights"]}
        adapter = initial_adapter(base, given["lora"], given["seed"])
        self.assertEqual(list(adapter), list(given["drawn"]))
        for name, tensor in adapter.items():
            self.assertEqual(tensor.flatten().tolist(), given["drawn"][name])


class Checkpoints(unittest.TestCase):
    def round_trip(self, folder: str, most: int = checkpoint.MAX_SHARD_BYTES) -> checkpoint.Checkpoint:
        store = Folder()
        manifest = next(json.loads(d) for k, d in store.files.items() if f"/{folder}" in k and k.endswith("manifest.json"))
        digests = {name: file["sha256"] for name, file in manifest["files"].items()}
        ref = store.ref(folder, checkpoint.version_of(digests, manifest.get("base")))
        read = checkpoint.load(store, ref)
        written = checkpoint.contents_of(read, most=most)
        self.assertEqual(list(written), list(manifest["files"]))
        for name, data in written.items():
            self.assertEqual(data, store.get(manifest["files"][name]), name)
        # The manifest, too, is the same but for who wrote it.
        self.assertEqual(json_bytes(manifest), store.files[ref["manifest"]["key"]])
        return read

    def test_all_weights_with_a_critic_are_written_back_to_the_byte(self):
        read = self.round_trip("000001-")
        self.assertEqual([read.policy.updates, read.critic.updates], [3, 2])

    def test_an_adapter_is_written_back_to_the_byte_and_knows_its_base(self):
        read = self.round_trip("000002-")
        self.assertEqual(read.lora["targetModules"], ["q_proj", "down_proj"])
        self.assertEqual(set(read.merged()), set(read.base_weights))

    def test_shards_are_written_back_to_the_byte_and_are_what_transformers_reads(self):
        read = self.round_trip("000003-", 200)
        folder = next((GOLDEN / "learner" / "checkpoints").glob("000003-*"))
        self.assertGreater(len(list(folder.glob("model-*"))), 2)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        theirs = model.state_dict()
        for name, tensor in read.policy.weights.items():
            self.assertTrue(torch.equal(theirs[name], tensor), name)

    def test_a_manifest_that_lacks_a_shard_is_refused(self):
        store = Folder()
        ref = store.ref("000003-", "0" * 64)
        manifest = json.loads(store.files[ref["manifest"]["key"]])
        del manifest["files"][next(name for name in manifest["files"] if name.startswith("model-00002"))]
        store.files[ref["manifest"]["key"]] = json_bytes(manifest)
        with self.assertRaises(Fault) as caught:
            checkpoint.load(store, store.ref("000003-", "0" * 64))
        self.assertEqual(caught.exception.type, "invalid-manifest")

    def test_a_manifest_of_other_weights_is_refused(self):
        store = Folder()
        with self.assertRaises(Fault) as caught:
            checkpoint.load(store, store.ref("000001-", "0" * 64))
        self.assertEqual(caught.exception.type, "checkpoint-conflict")


class Gap(unittest.TestCase):
    """The figures are those of test/unit/engine/learner/logprob-gap.test.ts."""

    def batch(self, *lengths: int) -> Batch:
        mask, offsets = [], [0]
        for length in lengths:
            mask += [0, 0, *(0 if i % 3 == 2 else 1 for i in range(length))]
            offsets.append(len(mask))
        size = len(mask)
        streams = {"rollout": torch.full((size,), -1.0)}
        return Batch(tokens=torch.zeros(size), offsets=offsets, mask=torch.tensor(mask), streams=streams)

    def test_it_is_told_by_position_and_by_length(self):
        batch = self.batch(64, 200, 3)
        logprobs = torch.where(batch.mask == 1, -1.0, 99.0)
        second = batch.offsets[1] + 2
        late = torch.arange(len(batch.tokens))
        late = (late >= second + 128) & (late < batch.offsets[2]) & (batch.mask == 1)
        found = gap(batch, [0, 1, 2], torch.where(late, -0.75, logprobs))
        self.assertEqual(found["logprobGapMax"], 0.25)
        self.assertAlmostEqual(found["logprobGapMean"], 48 * 0.25 / 179, 12)
        by_position = [{"from": 0, "tokens": 88, "mean": 0}, {"from": 64, "tokens": 43, "mean": 0}]
        self.assertEqual(found["logprobGapByPosition"], [*by_position, {"from": 128, "tokens": 48, "mean": 0.25}])
        *short, long = found["logprobGapByLength"]
        self.assertEqual(short, [{"from": 0, "tokens": 2, "mean": 0}, {"from": 64, "tokens": 43, "mean": 0}])
        self.assertEqual((long["from"], long["tokens"]), (128, 134))
        self.assertAlmostEqual(long["mean"], 48 * 0.25 / 134, 12)

    def test_by_staleness_it_is_told_of_late_sequences_too(self):
        batch = self.batch(64, 200, 3, 6, 6)
        logprobs = torch.full((len(batch.tokens),), 99.0)
        for i in range(len(batch)):
            counted = batch.counted([i])
            logprobs[counted] = -1 + i / 8
        batch.sequences = {
            "late": torch.tensor([0.0, 1, 1, 1, 0]),
            "staleness": torch.tensor([0.0, 2, 2, -1, 0]),
        }
        (fresh, stale) = gap_by_staleness(batch, [0, 1, 2, 3, 4], logprobs)["logprobGapByStaleness"]
        self.assertEqual((fresh["staleness"], fresh["tokens"]), (0, 47))
        self.assertAlmostEqual(fresh["mean"], 4 * 0.5 / 47, 12)
        self.assertEqual((stale["staleness"], stale["tokens"]), (2, 136))
        self.assertAlmostEqual(stale["mean"], (134 * 0.125 + 2 * 0.25) / 136, 12)
        self.assertEqual(gap_by_staleness(batch, [3], logprobs), {})
        batch.sequences = {}
        self.assertEqual(gap_by_staleness(batch, [0, 1], logprobs), {})

    def test_of_nothing_it_is_not_known(self):
        nothing = {"logprobGapMax": None, "logprobGapMean": None}
        self.assertEqual(gap(self.batch(3), [], torch.zeros(5)), nothing)
        self.assertEqual(gap(self.batch(3), [0], None), nothing)


class EffectiveSamples(unittest.TestCase):
    """The figures are those of test/unit/engine/learner/effective-samples.test.ts."""

    def test_it_is_of_tokens_and_of_sequences(self):
        mask = torch.tensor([0, 1, 1, 0, 1, 1, 0, 0])
        batch = Batch(torch.zeros(8), [0, 3, 6, 8], mask, streams={"rollout": torch.full((8,), -1.0)})
        logprobs = torch.tensor([9, -1, -1, 9, math.log(3) - 1, -1, 9, 9])
        found = effective_samples(batch, [0, 1, 2], logprobs)
        self.assertAlmostEqual(found["tokens"], 36 / (4 * 12), 6)
        self.assertAlmostEqual(found["sequences"], 16 / (2 * 10), 6)
        self.assertIsNone(effective_samples(batch, [2], logprobs))


class Batches(unittest.TestCase):
    def test_the_golden_batches_are_read(self):
        everything = decode((GOLDEN / "batch" / "everything.safetensors").read_bytes())
        self.assertEqual(everything.tokens.tolist(), [4, 5, 6, 7])
        self.assertEqual(everything.updates, [[1, 0], [1]])
        self.assertEqual(everything.streams["rollout"].tolist(), [0, 0, -0.25, -3])
        self.assertEqual(everything.sequences["teacher"].tolist(), [-1, 1])
        self.assertEqual(everything.kept_offsets.tolist(), [0, 0, 0, 2, 3])
        self.assertEqual(len(decode((GOLDEN / "batch" / "empty.safetensors").read_bytes())), 0)


class Words(unittest.TestCase):
    def test_requests_ask_for_what_there_is(self):
        for name in ("train-request", "train-request-everything", "train-request-distillation"):
            loss_of(golden(f"{name}.json")["objective"])

    def test_the_queue_and_the_heartbeat_are_those_of_the_other_side(self):
        said = golden("activities.json")
        self.assertEqual(temporal.QUEUE, said["queue"])
        self.assertEqual(temporal.BEAT_SECONDS, said["heartbeat"]["everySeconds"])

    def test_capabilities_are_the_golden_ones(self):
        said = Learner(None, Ranks(torch.device("cpu"))).capabilities()
        self.assertEqual(said | {"backend": golden("capabilities.json")["backend"]}, golden("capabilities.json"))

    def test_every_fault_is_in_the_list_of_failures(self):
        known = {failure["type"]: failure["retry"] for failure in golden("failures.json")}
        found = set()
        for source in SOURCES.rglob("*.py"):
            text = source.read_text()
            found |= {f"gradus.{b}.{t}" for b, t in re.findall(r'Fault\(\s*"([a-z]+)",\s*"([a-z-]+)"', text)}
            found |= {f"gradus.learner.{t}" for t in re.findall(r'wrong\(\s*"([a-z-]+)"', text)}
            found |= set(re.findall(r'type="(gradus\.[a-z.-]+)"', text))
        self.assertLess({"gradus.learner.diverged", "gradus.store.corrupt-object"}, found)
        # What a worker meets before it serves anything is no failure of an activity.
        self.assertEqual(found - {"gradus.infra.settings", "gradus.store.unconditional-writes"} - set(known), set())

    def test_an_unexpected_error_is_tried_five_times(self):
        retried = [not temporal.failure_of(KeyError("x"), attempt).non_retryable for attempt in (1, 4, 5)]
        self.assertEqual(retried, [True, True, False])
        self.assertTrue(temporal.failure_of(Fault("learner", "diverged", ""), 1).non_retryable)
        self.assertEqual(temporal.failure_of(OSError(28, "full"), 9).type, "gradus.infra.disk-full")


class Optimizer(unittest.TestCase):
    def test_epsilon_is_added_before_the_bias_is_corrected(self):
        parameter = torch.nn.Parameter(torch.tensor([1.0]))
        parameter.grad = torch.tensor([0.5])
        adam = Adam({"w": parameter}, {}, {}, 0)
        given = {"learningRate": 0.1, "warmupUpdates": 0, "beta1": 0.9, "beta2": 0.99, "epsilon": 1.0, "maxGradientNorm": 0}
        adam.descend(given, 0.0, "update 1", Ranks(torch.device("cpu")))
        m, v = 0.05, 0.0025
        self.assertAlmostEqual(float(parameter.detach()), 1 - 0.1 * 0.01**0.5 / 0.1 * m / (v**0.5 + 1.0), places=6)

    def test_the_cosine_is_of_all_gradients_with_the_moments_before(self):
        gradients = {"a": [3.0, 0.0], "b": [4.0]}
        parameters = {name: torch.nn.Parameter(torch.zeros(len(values))) for name, values in gradients.items()}
        for name, values in gradients.items():
            parameters[name].grad = torch.tensor(values)
        given = {"learningRate": 0.1, "warmupUpdates": 0, "beta1": 0.9, "beta2": 0.99, "epsilon": 1.0, "maxGradientNorm": 1}
        here = Ranks(torch.device("cpu"))
        moments = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([-2.0])}
        adam = Adam(parameters, moments, {name: torch.ones_like(values) for name, values in moments.items()}, 1)
        # (3 · 1 + 0 · 2 − 4 · 2) / (5 · 3), whatever the gradient is clipped to.
        norm, cosine = adam.descend(given, 0.0, "update 2", here)
        self.assertAlmostEqual(norm, 5.0, places=6)
        self.assertAlmostEqual(cosine, -1 / 3, places=6)

    def test_without_a_gradient_or_moments_there_is_no_cosine(self):
        given = {"learningRate": 0.1, "warmupUpdates": 0, "beta1": 0.9, "beta2": 0.99, "epsilon": 1.0, "maxGradientNorm": 1}
        here = Ranks(torch.device("cpu"))
        parameter = torch.nn.Parameter(torch.tensor([1.0]))
        adam = Adam({"w": parameter}, {}, {}, 0)
        parameter.grad = torch.tensor([0.5])
        self.assertIsNone(adam.descend(given, 0.0, "update 1", here)[1])
        adam.zero()
        self.assertIsNone(adam.descend(given, 0.0, "update 2", here)[1])


if __name__ == "__main__":
    unittest.main()
