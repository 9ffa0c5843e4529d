"""Simulation tier: GFN2-xTB (Bannwarth, Ehlert, Grimme 2019, doi:10.1021/acs.jctc.8b01176) by tblite, one point."""

import numpy
from tblite.exceptions import TBLiteRuntimeError
from tblite.interface import Calculator

from .contract import Abstention, Measured
from .geometry import embed

MOST_HEAVY_ATOMS = 60
BOHR_IN_ANGSTROM = 0.529177210903
HARTREE_IN_EV = 27.211386245988
ATOMIC_UNIT_IN_DEBYE = 2.541746473


def measure(smiles: str, max_cycles: int = 250) -> Measured:
    """Raises Abstention."""
    geometry = embed(smiles, MOST_HEAVY_ATOMS)
    calculator = Calculator("GFN2-xTB", numpy.array(geometry.numbers), geometry.positions / BOHR_IN_ANGSTROM)
    calculator.set("verbosity", 0)
    calculator.set("max-iter", max_cycles)
    try:
        result = calculator.singlepoint()
    except TBLiteRuntimeError as error:
        raise Abstention("no-convergence", f"GFN2-xTB, {max_cycles} cycles: {error}") from error
    levels = result.get("orbital-energies")
    occupied = round(float(result.get("orbital-occupations").sum()) / 2)
    if not 0 < occupied < len(levels):
        raise Abstention("unsupported", "no empty orbital")
    return Measured(
        {
            "gap_eV": float(levels[occupied] - levels[occupied - 1]) * HARTREE_IN_EV,
            "dipole_D": float(numpy.linalg.norm(result.get("dipole"))) * ATOMIC_UNIT_IN_DEBYE,
            "energy_Eh": float(result.get("energy")),
        },
        evidence=f"GFN2-xTB//MMFF94, {len(geometry.numbers)} atoms",
    )
