"""Code of the user's own, run because a command names it: `--model my_module:build`, `--metric my_module:judge`."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.models import Model, zoo
from eigentime.ranks import own_device
from eigentime.tasks import EXACT


def named(incomplete: str) -> list[str]:
    """Names of models that begin so, for the completion of shells."""
    return [name for name in (*zoo(), *EXACT) if name.startswith(incomplete)]


ModelOrOwn = Annotated[
    str | None,
    typer.Argument(
        help="A named model (`eigentime models` lists them), a folder of a training run, or a checkpoint.",
        autocompletion=named,
        show_default=False,
    ),
]
OwnModel = Annotated[
    str | None,
    typer.Option(
        "--model", help="Instead: your own, my_module:build. The module is run; build() returns what et.wrap returns."
    ),
]
OwnMetric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Your own judge, my_module:judge. The module is run; judge(tokens) returns a number, one value for every "
        "sequence, a pair (mean, standard error), or a dictionary of these.",
    ),
]


def load_named_or_own(
    name: str | None,
    own: str | None,
    kernel: str | None,
    device: str | None,
    dtype: str | None,
    *,
    length: int | None,
    trust_remote_code: bool,
) -> Model:
    """The model that a command is about: by name, or built by the user's own function."""
    if (name is None) == (own is None):
        raise EigentimeError("Say which model: its name (`eigentime models`), or your own as --model my_module:build.")
    device = own_device(device)
    if name is not None:
        return api.load(name, kernel, length=length, trust_remote_code=trust_remote_code, device=device, dtype=dtype)
    assert own is not None
    if kernel is not None or dtype is not None or length is not None:
        raise EigentimeError(f"The kernel, the precision and the length of your own model are what {own} made them.")
    built = _called(function_named(own, "model"), own)
    if not isinstance(built, Model):
        raise EigentimeError(
            f"{own} returned {type(built).__name__}, not a model: return et.wrap(network, process, length=…)."
        )
    return built if device is None else built.to(device)


def function_named(text: str, option: str) -> Callable[..., Any]:
    """The function that my_module:function or folder/file.py:function names; the module is run to find it."""
    module, _, name = text.rpartition(":")
    if not module or not name.isidentifier():
        raise EigentimeError(f"--{option} takes a module and a function such as my_module:build, not {text!r}.")
    path = Path(module)
    if path.suffix == ".py":
        if not path.is_file():
            raise EigentimeError(f"There is no file {path} for --{option}.")
        folder, module = path.parent, path.stem
    else:
        folder = Path()
    found = getattr(_imported(module, folder, option), name, None)
    if not callable(found):
        raise EigentimeError(f"{module} has no function {name!r} for --{option}.")
    return found  # type: ignore[no-any-return]


def _imported(module: str, folder: Path, option: str) -> Any:
    sys.path.insert(0, str(folder.resolve()))
    _forget_namesake(module, folder / f"{module}.py")
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module.partition(".")[0]:
            raise EigentimeError(f"{module} needs the package {missing.name!r}, which is not installed.") from missing
        raise EigentimeError(
            f"There is no module {module!r} for --{option}: run the command in its folder, or name the file, as in "
            "folder/file.py:build."
        ) from None
    except Exception as failure:
        raise EigentimeError(f"{module} cannot be imported ({type(failure).__name__}: {failure}).") from failure
    finally:
        sys.path.remove(str(folder.resolve()))


def _forget_namesake(module: str, path: Path) -> None:
    """Another folder may hold a file of the same name: `--model a/mine.py:build --metric b/mine.py:judge`."""
    known = getattr(sys.modules.get(module), "__file__", None)
    if known is not None and path.is_file() and not path.samefile(known):
        del sys.modules[module]


def _called(function: Callable[[], Any], text: str) -> Any:
    try:
        return function()
    except EigentimeError:
        raise
    except Exception as failure:
        raise EigentimeError(f"{text} failed ({type(failure).__name__}: {failure}).") from failure
