"""What predicts: the one small `Model` interface, exact oracles, and a wrapper for anybody's network."""

from eigentime.models.base import Model
from eigentime.models.independent import Independent
from eigentime.models.markov import MarkovChain
from eigentime.models.oracle import Oracle
from eigentime.models.table import Table
from eigentime.models.wrap import wrap

__all__ = ["Independent", "MarkovChain", "Model", "Oracle", "Table", "wrap"]
