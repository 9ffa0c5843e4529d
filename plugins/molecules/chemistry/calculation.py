"""Which calculation a request asks for: by the verifier's name, with the subject's fields checked."""

from .contract import Abstained, Abstention, BadRequest, Finding, Json

TIERS = {"xtb": "simulation", "dft": "high-fidelity"}
"""Verifiers that this worker knows, and their tiers."""

FIELDS: dict[str, dict[str, type]] = {
    "xtb": {"smiles": str, "maxCycles": int},
    "dft": {"smiles": str, "basis": str, "maxCycles": int},
}
BASES = ("sto-3g", "def2-svp")


def check(verifier: str, subject: Json) -> None:
    """Raises BadRequest for what no attempt can mend, before anything is computed."""
    if verifier not in TIERS:
        raise BadRequest(f"no verifier {verifier!r} here; there are {', '.join(TIERS)}")
    if not isinstance(subject, dict):
        raise BadRequest(f"the subject of {verifier} is an object, not {type(subject).__name__}")
    known = FIELDS[verifier]
    for name, value in subject.items():
        if name not in known:
            raise BadRequest(f"subject.{name} is unknown to {verifier}; its fields are {', '.join(known)}")
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise BadRequest(f"subject.{name} is {value!r}; it must be a {known[name].__name__}")
    for name in known:
        if name not in subject and name != "maxCycles":
            raise BadRequest(f"subject.{name} is missing")
    if subject.get("maxCycles", 1) < 1:
        raise BadRequest("subject.maxCycles must be at least 1")
    if verifier == "dft" and subject["basis"] not in BASES:
        raise BadRequest(f"subject.basis is {subject['basis']!r}; it can be {', '.join(BASES)}")


def calculate(verifier: str, subject: Json) -> Finding:
    """Seconds to minutes. Raises BadRequest; anything else that goes wrong is an abstention with its type."""
    check(verifier, subject)
    given = dict(subject)
    if "maxCycles" in given:
        given["max_cycles"] = given.pop("maxCycles")
    try:
        # Each loads its library only in the process that needs it.
        if verifier == "xtb":
            from .xtb import measure as measure_xtb

            return measure_xtb(**given)
        from .dft import measure as measure_dft

        return measure_dft(**given)
    except Abstention as reason:
        return Abstained(reason.type, reason.reason)
    except Exception as error:
        return Abstained("calculation-error", f"{type(error).__name__}: {error}")
