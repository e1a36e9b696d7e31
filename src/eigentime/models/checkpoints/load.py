"""Which family a checkpoint belongs to is read off its weights' names."""

from typing import Any

from eigentime.arguments import whole
from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.models.checkpoints import ddit_family, diffusion_gemma, guidance, masked_lm_files, tauldr
from eigentime.models.checkpoints.asked import Asked
from eigentime.models.checkpoints.files import Checkpoint, find, read, read_config
from eigentime.reading import DAMAGED, first_line

FAMILIES = [ddit_family, tauldr, guidance]
"""Modules with `fits(checkpoint)` and `build(checkpoint)`; the first that fits builds."""
LIBRARIES = [diffusion_gemma, masked_lm_files]
"""Modules with `describes(asked)` and `load(asked)`, whose weights another library reads; they are asked first."""


def load_checkpoint_model(
    source: str,
    handed: dict[str, Any],
    *,
    revision: str | None = None,
    length: int | None = None,
    block_length: int | None = None,
    trust_remote_code: bool = False,
) -> Model:
    """A published checkpoint, from a folder, a file or a hub id; what is `handed` on is for transformers."""
    path = find(source, revision)
    config = read_config(path if path.is_dir() else path.parent)
    asked = Asked(source, path, config, length, block_length, trust_remote_code, handed)
    for library in LIBRARIES:
        if library.describes(asked):
            loaded: Model = library.load(asked)
            return loaded
    if block_length is not None:
        raise EigentimeError(f"`block_length` is for language models trained in blocks, which {source} is not.")
    refuse_for_transformers(source, handed)
    checkpoint = read(source, path, config)
    for family in FAMILIES:
        if family.fits(checkpoint):
            model = _built(family, checkpoint)
            if length not in (None, model.length):
                raise EigentimeError(f"{source} has sequences of {model.length} tokens; leave `length` out.")
            if "dtype" in handed:
                model.cast(handed["dtype"])
            return model
    first = next(iter(checkpoint.weights))
    raise EigentimeError(f"{checkpoint.path} belongs to no known family of networks (its first weight is {first}).")


def _built(family: Any, checkpoint: Checkpoint) -> Model:
    """A family's model; what a strange configuration provokes becomes a sentence."""
    try:
        model: Model = family.build(checkpoint)
    except EigentimeError:
        raise
    except (RuntimeError, AssertionError, *DAMAGED) as error:
        kind = type(error).__name__
        raise EigentimeError(
            f"Weights and configuration of {checkpoint.path} make no network ({kind}: {first_line(error)})."
        ) from None
    whole(1)(model.length, f"The length that {checkpoint.path} is configured for")
    return model


def refuse_for_transformers(source: str, handed: dict[str, Any]) -> None:
    """What only transformers understands is refused for networks that it does not load; any network takes a dtype."""
    for argument in handed:
        if argument != "dtype":
            raise EigentimeError(f"`{argument}` is for models that transformers loads, which {source} is not.")
