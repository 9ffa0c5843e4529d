"""What a tier is asked and what it answers, as in core/tier-contract.ts; held by test/golden/tier-contract."""

import math
from dataclasses import dataclass
from typing import Any

REQUEST_FORMAT = "gradus.verify/1"
ANSWER_FORMAT = "gradus.verdict/1"
LONGEST_EVIDENCE = 4096
"""Bytes of UTF-8."""

Json = Any


class BadRequest(ValueError):
    """The request is not what the contract says; trying again cannot help."""


class Abstention(Exception):
    """The subject cannot be judged, now or later. Never a zero."""

    def __init__(self, type: str, reason: str) -> None:
        super().__init__(type, reason)
        self.type = type
        self.reason = reason


@dataclass(frozen=True)
class TierRequest:
    verifier: str
    version: str
    digest: str
    subject: Json

    @staticmethod
    def from_json(value: Json) -> "TierRequest":
        """Fields that are not known are let pass: a newer orchestrator may send more. Raises BadRequest."""
        if not isinstance(value, dict):
            raise BadRequest(f"a request is an object, not {type(value).__name__}")
        if value.get("format") != REQUEST_FORMAT:
            raise BadRequest(f"format is {value.get('format')!r}; this worker reads {REQUEST_FORMAT!r}")
        for name in ("verifier", "version", "digest"):
            if not isinstance(value.get(name), str) or value[name] == "":
                raise BadRequest(f"{name} is {value.get(name)!r}; it must be a text")
        digest = value["digest"]
        if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise BadRequest(f"digest is {digest!r}; it must be a SHA-256 in lower-case hex")
        if "subject" not in value:
            raise BadRequest("subject is missing")
        return TierRequest(value["verifier"], value["version"], digest, value["subject"])

    def to_json(self) -> dict[str, Json]:
        return {
            "format": REQUEST_FORMAT,
            "verifier": self.verifier,
            "version": self.version,
            "digest": self.digest,
            "subject": self.subject,
        }


@dataclass(frozen=True)
class Scored:
    score: float
    """In [0, 1]."""
    uncertainty: float | None = None
    evidence: str | None = None
    kind = "scored"

    def fields(self) -> dict[str, Json]:
        if not 0 <= self.score <= 1:
            raise ValueError(f"a score lies in [0, 1], not {self.score}")
        return {"score": self.score, "uncertainty": self.uncertainty}


@dataclass(frozen=True)
class Measured:
    values: dict[str, float]
    """By name, the unit in the name."""
    uncertainties: dict[str, float] | None = None
    evidence: str | None = None
    kind = "measured"

    def fields(self) -> dict[str, Json]:
        for name, value in {**self.values, **(self.uncertainties or {})}.items():
            if not math.isfinite(value):
                raise ValueError(f"{name} is {value}, which no JSON can say")
        return {"values": self.values, "uncertainties": self.uncertainties}


@dataclass(frozen=True)
class Abstained:
    type: str
    reason: str
    evidence: str | None = None
    kind = "abstained"

    def fields(self) -> dict[str, Json]:
        return {"type": self.type, "reason": self.reason}


Finding = Scored | Measured | Abstained


def answer(request: TierRequest, finding: Finding, seconds: float, usd: float = 0) -> dict[str, Json]:
    """The answer to a request. What is None is left out: in TypeScript it is absent, never null."""
    given = {
        "format": ANSWER_FORMAT,
        "verifier": request.verifier,
        "version": request.version,
        "digest": request.digest,
        "spent": {"seconds": seconds, "usd": usd},
        "evidence": None if finding.evidence is None else cut(finding.evidence, LONGEST_EVIDENCE),
        "kind": finding.kind,
        **finding.fields(),
    }
    return {name: value for name, value in given.items() if value is not None}


def finding_from_json(value: dict[str, Json]) -> Finding:
    """Reads the finding in an answer, or in what a calculation process says. Raises KeyError or ValueError."""
    evidence = value.get("evidence")
    kind = value["kind"]
    if kind == "scored":
        return Scored(value["score"], value.get("uncertainty"), evidence)
    if kind == "measured":
        return Measured(value["values"], value.get("uncertainties"), evidence)
    if kind == "abstained":
        return Abstained(value["type"], value["reason"], evidence)
    raise ValueError(f"no kind of answer is called {kind!r}")


def cut(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, at a character's end."""
    encoded = text.encode()
    return text if len(encoded) <= most else encoded[: most - 3].decode(errors="ignore") + "…"
