"""The samplers by name: one file each, and one line here."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass

from eigentime.arguments import shown
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
    """The sampler of that name with its usual settings, or with a number for the first of them ("threshold:0.8"), or
    the one given."""
    if isinstance(sampler, Sampler):
        return sampler
    if not isinstance(sampler, str):
        raise EigentimeError(f"sampler must be a name or a sampler such as et.Euler(), not {shown(sampler)}.")
    name, _, number = sampler.partition(":")
    if name not in SAMPLERS:
        raise EigentimeError(f"Unknown sampler {sampler!r}; known are {', '.join(SAMPLERS)}.")
    usual = SAMPLERS[name]()
    if not number:
        return usual
    first = next(iter(vars(usual)), None)
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if first is None or not _is_number(vars(usual)[first]) or value != value:
        raise EigentimeError(f"{sampler!r} sets nothing: a number after the colon is a sampler's first setting.")
    return type(usual)(**{first: value})


def label(sampler: str | Sampler) -> str:
    """The sampler's name with its settings: those that are not as usual, and all numbers but those that are off."""
    made = make_sampler(sampler)
    usual = vars(SAMPLERS[made.name]()) if made.name in SAMPLERS else {}
    words = [
        _worded(name, value)
        for name, value in sorted(vars(made).items(), key=lambda setting: _is_number(setting[1]))
        if _in_short(made, name) and (_named(value) != _named(usual.get(name)) or (_is_number(value) and value != 0))
    ]
    plain = isinstance(sampler, str) and ":" not in sampler
    return f"{made.name} ({', '.join(words)})" if words and not plain else made.name


def _worded(name: str, value: object) -> str:
    """A setting in words; of what is switched on the name says it all."""
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} {value:g}" if isinstance(value, int | float) else f"{name} {_named(value)}"


def _in_short(made: Sampler, name: str) -> bool:
    """Whether a setting is one that its class shows."""
    return not is_dataclass(made) or all(each.repr for each in fields(made) if each.name == name)


def _named(value: object) -> str:
    """A setting in short: words as they are, orders by their names, anything else by its kind."""
    if isinstance(value, str | int | float | None):
        return str(value)
    return str(getattr(value, "name", type(value).__name__))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
