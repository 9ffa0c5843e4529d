"""A molecule's shape from its SMILES: RDKit's ETKDG embedding with a fixed seed, relaxed with MMFF94."""

from dataclasses import dataclass

import numpy
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem

from .contract import Abstention

RDLogger.DisableLog("rdApp.*")

SEED = 61453
"""Of the embedding, so that a molecule always has the same shape."""


@dataclass(frozen=True)
class Geometry:
    numbers: list[int]
    """Atomic numbers [atoms]."""
    positions: numpy.ndarray
    """[atoms, 3], ångström."""
    heavy_atoms: int


def embed(smiles: str, most_heavy_atoms: int) -> Geometry:
    """Raises Abstention: unreadable, too-large, unsupported (charges, radicals, several parts), embedding, geometry."""
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() == 0:
        raise Abstention("unreadable", f"RDKit cannot read {smiles!r}")
    heavy = molecule.GetNumHeavyAtoms()
    if heavy > most_heavy_atoms:
        raise Abstention("too-large", f"{heavy} heavy atoms; this tier takes up to {most_heavy_atoms}")
    if len(Chem.GetMolFrags(molecule)) > 1:
        raise Abstention("unsupported", "several parts; one molecule at a time")
    if Chem.GetFormalCharge(molecule) != 0:
        raise Abstention("unsupported", "a charged molecule")
    if any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        raise Abstention("unsupported", "unpaired electrons")
    molecule = Chem.AddHs(molecule)
    settings = AllChem.ETKDGv3()
    settings.randomSeed = SEED
    settings.maxIterations = 50
    if AllChem.EmbedMolecule(molecule, settings) != 0:
        settings.useRandomCoords = True
        if AllChem.EmbedMolecule(molecule, settings) != 0:
            raise Abstention("embedding", "no arrangement in space was found: the molecule is too strained")
    # -1: no parameters for an atom, so the embedding's own shape stands. 1: not yet at rest, which is near enough.
    if AllChem.MMFFHasAllMoleculeParams(molecule):
        AllChem.MMFFOptimizeMolecule(molecule, maxIters=2000)
    positions = molecule.GetConformer().GetPositions()
    if not closest_pair(positions) > 0.5:
        raise Abstention("geometry", "two atoms lie within 0.5 ångström of each other")
    return Geometry([atom.GetAtomicNum() for atom in molecule.GetAtoms()], positions, heavy)


def closest_pair(positions: numpy.ndarray) -> float:
    """The smallest distance between two atoms; infinite for a single one, nan where a position is none."""
    if not numpy.isfinite(positions).all():
        return float("nan")
    count = len(positions)
    apart = numpy.linalg.norm(positions[:, None] - positions[None, :], axis=-1)
    return float(apart[~numpy.eye(count, dtype=bool)].min()) if count > 1 else float("inf")
