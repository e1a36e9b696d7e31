"""Models by name: bundled ones, folders of training runs, published checkpoints."""

from pathlib import Path
from typing import Any

import torch

from eigentime.arguments import checked, flag, optional, place, whole, words
from eigentime.errors import EigentimeError
from eigentime.models import Model, load_folder, zoo
from eigentime.models.checkpoints import load_checkpoint_model, refuse_for_transformers
from eigentime.models.placement import check_device, check_dtype
from eigentime.models.trained import is_model_folder
from eigentime.tasks import EXACT, MODELS


@checked(
    name=place,
    kernel=optional(words),
    revision=optional(words),
    length=optional(whole(1)),
    block_length=optional(whole(1)),
    trust_remote_code=flag,
    attn_implementation=optional(words),
)
def load(
    name: str | Path,
    kernel: str | None = None,
    *,
    revision: str | None = None,
    length: int | None = None,
    block_length: int | None = None,
    trust_remote_code: bool = False,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    device_map: Any = None,
    quantization_config: Any = None,
    attn_implementation: str | None = None,
) -> Model:
    """A model by name (`eigentime models` lists them), from a folder that `eigentime train` wrote, or a published
    checkpoint: a folder, a file or a hub id such as "louaaron/sedd-small".

    kernel             "absorbing" or "uniform": one of an exact model's two; a trained network has its own
    revision           of a hub repository
    length             tokens of a sequence, for language models that take any number
    block_length       tokens of the blocks that LLaDA2 or SDAR was trained in, where its configuration does not say
    trust_remote_code  run Python code that comes with a checkpoint; nothing of the kind happens otherwise
    device             where a network goes: "cuda", "mps", …; it may move later with model.to(device)
    dtype              what a network computes in: "float16", "bfloat16", "float32"
    device_map, quantization_config, attn_implementation
                       handed to transformers, for the masked language models that it loads: a network over several
                       devices ("auto"), in fewer bits, with another attention
    """
    name = str(name)
    handed = {
        "device_map": device_map,
        "quantization_config": quantization_config,
        "attn_implementation": attn_implementation,
    }
    handed = {argument: value for argument, value in handed.items() if value is not None}
    if device is not None and ("device_map" in handed or "quantization_config" in handed):
        raise EigentimeError("device_map and quantization_config say where a network goes; leave `device` out.")
    path = zoo().get(name, Path(name))
    ours = name in EXACT or is_model_folder(path)
    if block_length is not None and ours:
        raise EigentimeError(f"`block_length` is for language models trained in blocks, which {name} is not.")
    if length is not None and ours:
        raise EigentimeError(f"`length` is for language models that take any number of tokens; {name} has its own.")
    if name in EXACT:
        if dtype is not None:
            raise EigentimeError(f"{name} is exact and computes in double precision; leave `dtype` out.")
        exact = EXACT[name].exact("absorbing" if kernel is None else kernel)
        exact.task = EXACT[name]
        return exact if device is None else exact.to(check_device(device))
    target, precision = None if device is None else check_device(device), None if dtype is None else check_dtype(dtype)
    if precision is not None:
        handed["dtype"] = precision
    if not path.exists() and "/" not in name:
        known = ", ".join([*zoo(), *EXACT])
        raise EigentimeError(
            f"Unknown model {name!r}: neither a file, a folder, a hub id nor one of {known}. A network of your own is "
            "wrapped in Python: et.wrap(network, process, length=…)."
        )
    if is_model_folder(path):
        refuse_for_transformers(name, handed)
        model: Model = load_folder(path)
        model.task = MODELS.get(model.name)
        if precision is not None:
            model.cast(precision)
    else:
        model = load_checkpoint_model(
            name,
            handed,
            revision=revision,
            length=length,
            block_length=block_length,
            trust_remote_code=trust_remote_code,
        )
    if kernel not in (None, model.process.kernel.name):
        raise EigentimeError(f"{name} was trained on the {model.process.kernel.name} kernel; leave `kernel` out.")
    return model if target is None else model.to(target)
