"""High-fidelity tier: B3LYP with density fitting by PySCF (Sun et al. 2020, doi:10.1063/5.0006074), one point."""

import numpy
from pyscf import dft, gto, lib

from .contract import Abstention, Measured
from .geometry import embed
from .xtb import HARTREE_IN_EV

MOST_HEAVY_ATOMS = 16
BASES = ("sto-3g", "def2-svp")
MEMORY_MB = 2000


def measure(smiles: str, basis: str, max_cycles: int = 60) -> Measured:
    """Raises Abstention."""
    geometry = embed(smiles, MOST_HEAVY_ATOMS)
    molecule = gto.M(
        atom=list(zip(geometry.numbers, geometry.positions.tolist())),
        basis=basis,
        unit="Angstrom",
        verbose=0,
        max_memory=MEMORY_MB,
    )
    field = dft.RKS(molecule, xc="b3lyp").density_fit()
    field.max_cycle = max_cycles
    field.chkfile = None
    field.kernel()
    if not field.converged:
        # Second order: dearer, and converges where DIIS swings to and fro.
        field = field.newton()
        field.max_cycle = max_cycles
        if max_cycles > 1:
            field.kernel()
    if not field.converged:
        raise Abstention("no-convergence", f"B3LYP/{basis} did not converge in {max_cycles} cycles")
    levels = numpy.asarray(field.mo_energy)
    occupied = molecule.nelectron // 2
    if not 0 < occupied < len(levels):
        raise Abstention("unsupported", f"no empty orbital in {basis}")
    return Measured(
        {
            "gap_eV": float(levels[occupied] - levels[occupied - 1]) * HARTREE_IN_EV,
            "dipole_D": float(numpy.linalg.norm(field.dip_moment(verbose=lib.logger.QUIET))),
            "energy_Eh": float(field.e_tot),
        },
        evidence=f"B3LYP/{basis}//MMFF94, {len(geometry.numbers)} atoms, {molecule.nao} functions",
    )
