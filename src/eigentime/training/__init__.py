"""How a network is trained: losses, one loop that can be killed at any moment, and the recipe of a run."""

from eigentime.training.loop import train
from eigentime.training.losses import LOSSES, Loss
from eigentime.training.recipe import Recipe

__all__ = ["LOSSES", "Loss", "Recipe", "train"]
