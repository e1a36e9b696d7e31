"""Pickled weights without running anything.

`torch.load(weights_only=True)` reads most checkpoints. Lightning's also hold configurations and tokenizers of other
packages; for those every class that is not a plain tensor or container becomes an inert stand-in, so that nothing that
a file names is ever imported or called.
"""

import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from eigentime.errors import EigentimeError

PLAIN = {
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch", "Size"),
    ("torch", "device"),
    ("builtins", "set"),
    ("builtins", "dict"),
    ("builtins", "list"),
    ("builtins", "int"),
    ("builtins", "float"),
}
STORAGES = (
    "FloatStorage",
    "HalfStorage",
    "BFloat16Storage",
    "DoubleStorage",
    "LongStorage",
    "IntStorage",
    "BoolStorage",
)
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "bool", "uint8")


class Inert(dict[Any, Any]):  # a dict, so that items set on it go somewhere
    """Stands for an object of a class that is not loaded; it takes whatever it is given and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, *args: Any, **kwargs: Any) -> "Inert":
        return Inert()

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.update(state)

    def append(self, item: Any) -> None:
        """Accepts list items too."""

    def extend(self, items: Any) -> None:
        """Accepts list items too."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


class _Unpickler(pickle.Unpickler):
    """Finds tensors and plain containers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in PLAIN or (module == "torch" and name in (*STORAGES, *DTYPES)):
            return super().find_class(module, name)
        return Inert


def _restricted() -> ModuleType:
    module = ModuleType("restricted_pickle")
    module.Unpickler = _Unpickler  # type: ignore[attr-defined]
    module.load = lambda file, **kwargs: _Unpickler(file, **kwargs).load()  # type: ignore[attr-defined]
    return module


def read_pickle(path: str | Path) -> Any:
    """The content of a `.bin`, `.pt`, `.pth` or `.ckpt` file, tensors on the CPU."""
    path = Path(path)
    try:
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except (pickle.UnpicklingError, RuntimeError):
            return torch.load(path, map_location="cpu", weights_only=False, pickle_module=_restricted())
    except (
        pickle.UnpicklingError,
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
    ) as error:
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        raise EigentimeError(f"{path} is not a whole checkpoint file ({detail}).") from None
