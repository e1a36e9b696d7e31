"""Which family a checkpoint belongs to is read off its weights' names."""

from eigentime.errors import EigentimeError
from eigentime.models.checkpoints import ddit_family, guidance, tauldr
from eigentime.models.checkpoints.files import read
from eigentime.models.trained import Trained

FAMILIES = (ddit_family, tauldr, guidance)


def load_checkpoint_model(source: str, revision: str | None = None) -> Trained:
    """A published checkpoint, from a folder, a file or a hub id."""
    checkpoint = read(source, revision)
    for family in FAMILIES:
        if family.fits(checkpoint):
            return family.build(checkpoint)
    first = next(iter(checkpoint.weights))
    raise EigentimeError(f"{checkpoint.path} belongs to no known family of networks (its first weight is {first}).")
