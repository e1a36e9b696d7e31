"""SGLang: the settings file of the plugin `eigentime-sglang`, written here and read there.

SGLang reads the file named by `--dllm-algorithm-config` (YAML, by `safe_load`) and hands its content to the algorithm;
every value is checked before a server starts. Nothing of SGLang is imported here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from eigentime.arguments import shown
from eigentime.engines.reveals import Reveals, reveals
from eigentime.errors import EigentimeError
from eigentime.files import SEAL, check_seal, sealed, write_atomically
from eigentime.orders import order_from_spec
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule

FORMAT, VERSION = "eigentime-sglang", 1
LONGEST = 4096
"""Tokens of a block, and evaluations."""
MOST_VALUES, DEEPEST = 100_000, 8
"""Of a file's content: YAML can refer to itself, so that a small file may unfold into a huge one."""
SHAPING = ("temperature", "top_p", "top_k")
KNOWN = {"format", "version", "counts", "alphas", "length", "order", "sampling", "seed", "block_size", SEAL, *SHAPING}


@dataclass(frozen=True, eq=False)
class Settings:
    """What the algorithm follows.

    follows   counts and places of a block
    shaping   what is done to posteriors before tokens are drawn; None takes each request's own temperature, top_p and
              top_k, which no certificate was made for
    seed      of all requests; each is told from the others by its id
    """

    follows: Reveals
    shaping: Shaping | None = field(default_factory=Shaping)
    seed: int = 0

    @classmethod
    def of(cls, followed: Schedule | Plan, shaping: Shaping | None = None, seed: int = 0) -> "Settings":
        """For a plan or a schedule."""
        return cls(reveals(followed), shaping or Shaping(), seed)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        follows, shaping = self.follows, self.shaping
        if follows.length is None:
            what: dict[str, Any] = {"alphas": follows.reached.tolist()}
        else:
            counts = np.diff(follows.reached).astype(int).tolist()
            what = {"length": follows.length, "counts": counts, "order": follows.order.spec()}
        drawn: dict[str, Any] = {"sampling": "request"}
        if shaping is not None:
            drawn = {"temperature": shaping.temperature}
            drawn |= {"top_p": shaping.top_p} if shaping.top_p < 1 else {}
            drawn |= {"top_k": shaping.top_k} if shaping.top_k is not None else {}
        return sealed({"format": FORMAT, "version": VERSION, **what, **drawn, "seed": self.seed})

    @classmethod
    def from_dict(cls, content: Any) -> "Settings":
        """What `to_dict` made, or a person wrote; anything else gets a sentence that says what is wrong."""
        _check_size(content)
        if not isinstance(content, Mapping) or content.get("format") != FORMAT or content.get("version") != VERSION:
            raise EigentimeError(
                f"The algorithm's settings are not those of {FORMAT} {VERSION}; make them with "
                "`eigentime export PLAN --engine sglang --out FILE.yaml` and give --dllm-algorithm-config FILE.yaml."
            )
        if unknown := sorted(set(map(str, content)) - KNOWN):
            raise EigentimeError(f"Unknown settings {shown(', '.join(unknown))}; known are {', '.join(sorted(KNOWN))}.")
        if ("counts" in content) == ("alphas" in content):
            raise EigentimeError("The settings need either a plan's `counts` and `order`, or a schedule's `alphas`.")
        follows = _plan(content) if "counts" in content else _schedule(content)
        settings = cls(follows, _shaping(content), _whole(content.get("seed", 0), "seed", -(2**63), 2**64))
        told = {key: value for key, value in content.items() if key != "block_size"}  # SGLang puts its own beside them
        check_seal(told, "The file of settings", f"if you changed it yourself, take its {SEAL} out")
        return settings

    def save(self, path: str | Path) -> None:
        """Write YAML; the file appears whole or not at all."""
        try:
            import yaml
        except ImportError:
            raise EigentimeError("Writing YAML needs PyYAML: pip install 'eigentime[hub]'.") from None
        content = self.to_dict()
        Settings.from_dict(content)  # what cannot be served is refused here
        evaluations = self.follows.evaluations
        head = f"# {evaluations} evaluations per block, and one more that stores its cache\n"
        write_atomically(path, head + yaml.safe_dump(content, sort_keys=False, default_flow_style=None))


def _check_size(content: Any) -> None:
    """Count values and depth before anything else looks at them."""
    waiting, seen = [(content, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if seen > MOST_VALUES or depth > DEEPEST:
            raise EigentimeError(
                f"The algorithm's settings hold more than {MOST_VALUES:,} values or {DEEPEST} levels; make them again."
            )
        inner = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
        waiting.extend((each, depth + 1) for each in inner[: MOST_VALUES + 1])


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise EigentimeError(f"{name} must be a whole number from {least} to {most}, not {shown(value)}.")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise EigentimeError(f"{name} must be a number, not {shown(value)}.")
    return float(value)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= LONGEST:
        raise EigentimeError(f"{name} must be a list of 1 to {LONGEST} numbers.")
    return value


def _plan(content: Mapping[str, Any]) -> Reveals:
    length = _whole(content.get("length"), "length", 1, LONGEST)
    counts = [_whole(count, "an entry of counts", 1, length) for count in _list(content["counts"], "counts")]
    if sum(counts) > length:
        raise EigentimeError(f"The counts add up to {sum(counts)}, but a block has {length} tokens.")
    spec = content.get("order")
    if not isinstance(spec, Mapping) or any(isinstance(value, int) and value > LONGEST for value in spec.values()):
        raise EigentimeError(f"order must be a mapping with a name and numbers up to {LONGEST}, not {shown(spec)}.")
    try:
        order = order_from_spec(dict(spec))
        arranged = order.arrange(np.ones(length, dtype=bool), np.full(length, 0.5))
    except EigentimeError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise EigentimeError(f"The order of the settings is damaged ({type(error).__name__}); export again.") from None
    if not np.array_equal(np.sort(arranged), np.arange(length)):
        raise EigentimeError(f"The order of the settings does not visit each of {length} places once; export again.")
    return Reveals(np.cumsum([0, *counts]).astype(float), order, length)


def _schedule(content: Mapping[str, Any]) -> Reveals:
    if "order" in content or "length" in content:
        raise EigentimeError("A schedule leaves the places to chance and fits any block; drop `order` and `length`.")
    alphas = np.array([_number(alpha, "an entry of alphas") for alpha in _list(content["alphas"], "alphas")])
    if len(alphas) < 2 or alphas[0] != 0 or alphas[-1] != 1 or np.any(np.diff(alphas) < 0):
        raise EigentimeError("alphas must rise from 0 (all masked) to 1 (all known).")
    return Reveals(alphas, order_from_spec({"name": "random"}))


def _shaping(content: Mapping[str, Any]) -> Shaping | None:
    own = [name for name in SHAPING if name in content]
    if "sampling" in content:
        if content["sampling"] != "request" or own:
            raise EigentimeError(
                "`sampling` can only be `request` (each request's temperature, top_p and top_k), and then stands "
                "without settings of the file's own."
            )
        return None
    top_k = content.get("top_k")
    return Shaping(
        _number(content.get("temperature", 1.0), "temperature"),
        _number(content.get("top_p", 1.0), "top_p"),
        None if top_k is None else _whole(top_k, "top_k", 1, 2**31),
    )
