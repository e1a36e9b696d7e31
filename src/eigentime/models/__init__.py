"""What predicts: the one small `Model` interface, exact oracles, networks, and a wrapper for anybody's own."""

from eigentime.models.base import Model
from eigentime.models.block import Block
from eigentime.models.ending import Ending
from eigentime.models.independent import Independent
from eigentime.models.ising import Ising
from eigentime.models.markov import MarkovChain
from eigentime.models.oracle import Oracle
from eigentime.models.table import Table
from eigentime.models.trained import Trained, load_folder, save_folder
from eigentime.models.wrap import wrap
from eigentime.models.zoo import zoo

__all__ = [
    "Block",
    "Ending",
    "Independent",
    "Ising",
    "MarkovChain",
    "Model",
    "Oracle",
    "Table",
    "Trained",
    "load_folder",
    "save_folder",
    "wrap",
    "zoo",
]
