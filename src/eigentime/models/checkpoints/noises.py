"""The noise curve that a checkpoint's configuration describes: what it says is honoured, what is not known refused."""

from typing import Any

from eigentime.errors import EigentimeError
from eigentime.process import Cosine, DuoCosine, Geometric, Linear, LogLinear, Noise

KNOWN = ("type", "eps", "sigma_min", "sigma_max")
"""Configurations carry all of them; each curve reads its own."""


def described_noise(described: Any, *, duo: bool = False) -> Noise:
    """From the section `noise` of a configuration; without one, log-linear as published networks are.

    duo   whether it is Duo's, whose `cosine` is another curve
    """
    if not isinstance(described, dict):
        raise EigentimeError(f"The noise of this checkpoint must be a section of settings, not {described!r}.")
    strange = sorted(str(key) for key in described if key not in KNOWN)
    if strange:
        raise EigentimeError(f"The noise of this checkpoint has the setting {strange[0]!r}, which is not known.")
    kind = str(described.get("type") or "loglinear").replace("-", "")
    eps = _number(described, "eps", 1e-3)
    if kind == "loglinear":
        return LogLinear(eps)
    if kind == "cosine" and duo:
        return DuoCosine(eps)
    if kind in ("cosine", "cosinesqr") and not duo:
        return Cosine(eps, power=1 if kind == "cosine" else 2)
    if kind == "geometric" and not duo:
        return Geometric(_number(described, "sigma_min", 1e-4), _number(described, "sigma_max", 20.0))
    if kind == "linear" and not duo:
        return Linear(_number(described, "sigma_min", 1e-3), _number(described, "sigma_max", 7.0))
    raise EigentimeError(f"The noise {described.get('type')!r} of this checkpoint is not known.")


def _number(described: dict[str, Any], key: str, usual: float) -> float:
    """A setting as a number; YAML reads 1e-3 as text."""
    value = described.get(key)
    try:
        return usual if value is None else float(value)
    except (TypeError, ValueError):
        raise EigentimeError(f"The noise of this checkpoint has {key} = {value!r}, which is not a number.") from None
