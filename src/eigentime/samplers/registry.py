"""The samplers by name: one file each, and one line here."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass

from eigentime.errors import EigentimeError
from eigentime.samplers.adaptive import EntropyBounded, Klass, Prefix, Threshold
from eigentime.samplers.apart import Apart
from eigentime.samplers.base import Sampler
from eigentime.samplers.chosen import Confidence, LowestEntropy, Margin
from eigentime.samplers.corrected import PredictorCorrector
from eigentime.samplers.counted import Counted
from eigentime.samplers.factorised import Ancestral, Euler, TauLeaping
from eigentime.samplers.first_hitting import FirstHitting
from eigentime.samplers.order_bounded import OrderBounded
from eigentime.samplers.remasking import Remasking
from eigentime.samplers.trapezoidal import Trapezoidal

SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "ancestral": Ancestral,
    "counted": Counted,
    "euler": Euler,
    "tau-leaping": TauLeaping,
    "trapezoidal": Trapezoidal,
    "predictor-corrector": PredictorCorrector,
    "confidence": Confidence,
    "margin": Margin,
    "entropy": LowestEntropy,
    "remasking": Remasking,
    "entropy-bounded": EntropyBounded,
    "threshold": Threshold,
    "klass": Klass,
    "prefix": Prefix,
    "order-bounded": OrderBounded,
    "apart": Apart,
    "first-hitting": FirstHitting,
}


def make_sampler(sampler: str | Sampler) -> Sampler:
    """The sampler of that name with its usual settings, or the one given."""
    if isinstance(sampler, Sampler):
        return sampler
    if sampler not in SAMPLERS:
        raise EigentimeError(f"Unknown sampler {sampler!r}; known are {', '.join(SAMPLERS)}.")
    return SAMPLERS[sampler]()


def label(sampler: str | Sampler) -> str:
    """The sampler's name with its settings: all numbers, and of the others those that are not as usual."""
    made = make_sampler(sampler)
    usual = vars(SAMPLERS[made.name]()) if made.name in SAMPLERS else {}
    shown = {name: value for name, value in vars(made).items() if _in_short(made, name)}
    numbers = {name: f"{value:g}" for name, value in shown.items() if _is_number(value)}
    others = {name: _named(value) for name, value in shown.items() if _named(value) != _named(usual.get(name))}
    settings = ", ".join(f"{name} {value}" for name, value in (others | numbers).items())
    return f"{made.name} ({settings})" if settings and not isinstance(sampler, str) else made.name


def _in_short(made: Sampler, name: str) -> bool:
    """Whether a setting is one that its class shows."""
    return not is_dataclass(made) or all(setting.repr for setting in fields(made) if setting.name == name)


def _named(value: object) -> str:
    """A setting in short: words as they are, orders by their names, anything else by its kind."""
    if isinstance(value, str | int | float | None):
        return str(value)
    return str(getattr(value, "name", type(value).__name__))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
