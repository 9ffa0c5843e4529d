"""The Python side of test/golden/tier-contract; the other side is test/unit/core/tier-contract.test.ts."""

import json
import math
import unittest
from pathlib import Path

from chemistry import contract
from chemistry.__main__ import queue_of
from chemistry.calculation import BASES, FIELDS, TIERS, calculate, check
from chemistry.contract import Abstained, BadRequest, Measured, Scored, TierRequest

GOLDEN = Path(__file__).parent.parent / "golden" / "tier-contract"


def golden(prefix: str) -> list[tuple[str, dict]]:
    return [(file.name, json.loads(file.read_text("utf-8"))) for file in sorted(GOLDEN.glob(f"{prefix}*.json"))]


class GoldenFiles(unittest.TestCase):
    def test_requests_are_read_and_written_back_the_same(self) -> None:
        self.assertGreaterEqual(len(golden("request-")), 4)
        for name, value in golden("request-"):
            with self.subTest(name):
                self.assertEqual(TierRequest.from_json(value).to_json(), value)

    def test_answers_are_read_and_written_back_the_same(self) -> None:
        self.assertGreaterEqual(len(golden("answer-")), 6)
        for name, value in golden("answer-"):
            with self.subTest(name):
                request = TierRequest(value["verifier"], value["version"], value["digest"], None)
                finding = contract.finding_from_json(value)
                again = contract.answer(request, finding, **value["spent"])
                self.assertEqual(json.loads(json.dumps(again)), value)

    def test_queues_are_those_that_typescript_asks_on(self) -> None:
        ((_, queues),) = golden("queues")
        self.assertEqual({tier: queue_of(tier) for tier in TIERS.values()}, queues)

    def test_requests_for_this_worker_pass_its_check(self) -> None:
        for name, value in golden("request-"):
            with self.subTest(name):
                if value["verifier"] in TIERS:
                    check(value["verifier"], value["subject"])
                else:
                    self.assertRaises(BadRequest, check, value["verifier"], value["subject"])


class Requests(unittest.TestCase):
    def test_what_is_no_request_is_refused_with_the_field_s_name(self) -> None:
        ((_, good),) = golden("request-xtb")
        broken = [
            ([], "object"),
            ({**good, "format": "gradus.verify/2"}, "format"),
            ({**good, "verifier": ""}, "verifier"),
            ({**good, "version": 1}, "version"),
            ({**good, "digest": "ABC"}, "digest"),
            ({name: value for name, value in good.items() if name != "subject"}, "subject"),
        ]
        for value, field in broken:
            with self.subTest(field):
                self.assertRaisesRegex(BadRequest, field, TierRequest.from_json, value)

    def test_a_subject_that_no_attempt_could_judge_is_refused(self) -> None:
        broken = [
            ("psi4", {"smiles": "C"}, "xtb, dft"),
            ("xtb", "C", "object"),
            ("xtb", {}, "smiles is missing"),
            ("xtb", {"smiles": 1}, "smiles"),
            ("xtb", {"smiles": "C", "basis": "sto-3g"}, "basis is unknown"),
            ("dft", {"smiles": "C", "basis": "cc-pvdz"}, "sto-3g, def2-svp"),
            ("dft", {"smiles": "C", "basis": "sto-3g", "maxCycles": 0}, "maxCycles"),
            ("dft", {"smiles": "C", "basis": "sto-3g", "maxCycles": True}, "maxCycles"),
        ]
        for verifier, subject, why in broken:
            with self.subTest(why):
                self.assertRaisesRegex(BadRequest, why, check, verifier, subject)
        self.assertEqual(set(FIELDS), set(TIERS))
        self.assertEqual(set(BASES), {"sto-3g", "def2-svp"})


class Answers(unittest.TestCase):
    request = TierRequest("xtb", "1", "0" * 64, {"smiles": "C"})

    def test_a_figure_that_json_cannot_say_is_an_error_here_and_not_over_there(self) -> None:
        self.assertRaises(ValueError, contract.answer, self.request, Measured({"gap_eV": math.nan}), 1)
        self.assertRaises(ValueError, contract.answer, self.request, Scored(1.5), 1)

    def test_long_evidence_is_cut_at_a_character_s_end(self) -> None:
        said = contract.answer(self.request, Abstained("crashed", "x", "ü🧪" * 2000), 1)["evidence"]
        self.assertLessEqual(len(said.encode()), contract.LONGEST_EVIDENCE)
        self.assertTrue(said.startswith("ü🧪"))
        self.assertTrue(said.endswith("…"))


class Calculations(unittest.TestCase):
    """Against the published method, within what its geometry leaves open, and the same every time."""

    def test_a_semi_empirical_point_is_right_and_repeats_to_the_bit(self) -> None:
        first = calculate("xtb", {"smiles": "O"})
        assert isinstance(first, Measured)
        # GFN2-xTB water: -5.0704 Eh, 14.2 eV; its dipole is above the measured 1.85 debye.
        self.assertAlmostEqual(first.values["energy_Eh"], -5.0702, places=3)
        self.assertAlmostEqual(first.values["gap_eV"], 14.16, delta=0.1)
        self.assertEqual(calculate("xtb", {"smiles": "O"}), first)

    def test_a_density_functional_point_is_right_and_repeats_to_the_bit(self) -> None:
        subject = {"smiles": "O", "basis": "sto-3g"}
        first = calculate("dft", subject)
        assert isinstance(first, Measured)
        self.assertAlmostEqual(first.values["energy_Eh"], -75.316, places=2)
        self.assertAlmostEqual(first.values["dipole_D"], 1.66, delta=0.1)
        self.assertEqual(calculate("dft", subject), first)

    def test_what_cannot_be_judged_is_an_abstention_with_its_type(self) -> None:
        cases = [
            ("xtb", {"smiles": "C(("}, "unreadable"),
            ("xtb", {"smiles": ""}, "unreadable"),
            ("xtb", {"smiles": "[NH4+]"}, "unsupported"),
            ("xtb", {"smiles": "[CH3]"}, "unsupported"),
            ("xtb", {"smiles": "C.C"}, "unsupported"),
            ("xtb", {"smiles": "C" * 61}, "too-large"),
            ("dft", {"smiles": "C" * 17, "basis": "sto-3g"}, "too-large"),
            ("dft", {"smiles": "O", "basis": "sto-3g", "maxCycles": 1}, "no-convergence"),
            ("xtb", {"smiles": "CC(=O)Nc1ccc(O)cc1", "maxCycles": 1}, "no-convergence"),
            # A bridgehead double bond in a cage that has no room for it.
            ("xtb", {"smiles": "C12=C3C4=C1C1=C4C3=C21"}, None),
        ]
        for verifier, subject, kind in cases:
            with self.subTest(subject=subject):
                finding = calculate(verifier, subject)
                if kind is not None:
                    assert isinstance(finding, Abstained), finding
                    self.assertEqual(finding.type, kind)


if __name__ == "__main__":
    unittest.main()
