"""Published checkpoints as they are: a folder, a file or a hub id in, a model out. One file a family."""

from eigentime.models.checkpoints.load import load_checkpoint_model, refuse_for_transformers

__all__ = ["load_checkpoint_model", "refuse_for_transformers"]
