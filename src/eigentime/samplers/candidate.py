"""A way of sampling: a sampler with its settings, and the schedule or plan that it walks along; kept in one file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigentime.arguments import checked, kind, optional, place, settle, shown, whole
from eigentime.code import code_fingerprint
from eigentime.errors import EigentimeError
from eigentime.files import check_seal, sealed, write_atomically
from eigentime.orders import Order, make_order, order_from_spec
from eigentime.reading import DAMAGED, first_line, read_json
from eigentime.samplers.base import Sampler
from eigentime.samplers.registry import SAMPLERS, label, make_sampler
from eigentime.schedules import Plan, Schedule
from eigentime.sharing import Shareable

FORMAT, VERSION = "eigentime-sampler", 1


@dataclass(frozen=True)
class Candidate(Shareable):
    """A way of sampling."""

    shared_as = "sampler.json"

    sampler: str | Sampler
    planned: Schedule | Plan | None = None
    block_length: int | None = None
    """Block by block from left to right, every one along the same schedule or plan."""

    def __post_init__(self) -> None:
        make_sampler(self.sampler)
        planned = kind((Schedule, Plan), "a schedule or a plan")
        settle(self, planned=optional(planned), block_length=optional(whole(1)))

    def __str__(self) -> str:
        blocks = "" if self.block_length is None else f" in blocks of {self.block_length}"
        if isinstance(self.planned, Plan):
            return f"plan, {self.planned.order.name}{blocks}"
        along = "" if self.planned is None else f" along {self.planned.strategy}"
        return f"{label(self.sampler)}{along}{blocks}"

    @property
    def fingerprint(self) -> str:
        """A short hash of the sampler with its settings, and of what it walks along."""
        made = make_sampler(self.sampler)
        settings = {key: each.spec() if isinstance(each, Order) else each for key, each in vars(made).items()}
        along = None if self.planned is None else str(self.planned.to_dict())
        return code_fingerprint([made.name, settings, along, self.block_length])

    def blocks(self, length: int) -> int:
        """How many blocks so many tokens are."""
        return 1 if self.block_length is None else length // self.block_length

    @checked(path=place)
    def save(self, path: str | Path) -> None:
        """Write JSON; the file appears whole or not at all."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "sampler": sampler_spec(make_sampler(self.sampler)),
            "planned": None if self.planned is None else self.planned.to_dict(),
            "block_length": self.block_length,
        }
        write_atomically(path, json.dumps(sealed(content), indent=1) + "\n")

    @classmethod
    @checked(path=place)
    def load(cls, path: str | Path) -> "Candidate":
        """Read what `save` wrote, or the file of a plan, or that of a schedule for the ancestral sampler."""
        path = Path(path)
        if not path.is_file():
            raise EigentimeError(f"There is no file {path} with a sampler, a schedule or a plan.")
        try:
            content = read_json(path)
            kind = content["format"]
        except (ValueError, KeyError, TypeError):
            raise EigentimeError(
                f"{path} holds no sampler, schedule or plan; `eigentime recommend` writes one."
            ) from None
        if kind != FORMAT:
            return cls("ancestral", Plan.load(path) if kind == "eigentime-plan" else Schedule.load(path))
        if content.get("version") != VERSION:
            raise EigentimeError(f"{path} is not a sampler file of version {VERSION}.")
        check_seal(content, path, "save the sampler again")
        try:
            planned = content["planned"]
            made = sampler_from_spec(content["sampler"])
            return cls(made, None if planned is None else _planned(planned, path), _block_length(content, path))
        except DAMAGED as error:
            raise EigentimeError(f"{path} is a damaged sampler file ({first_line(error)}).") from None


def _block_length(content: dict[str, Any], path: Path) -> int | None:
    length = content["block_length"]
    if length is not None and (type(length) is not int or length < 1):
        raise EigentimeError(f"{path} asks for blocks of {shown(length)} tokens.")
    return length


def _planned(content: dict[str, Any], path: Path) -> Schedule | Plan:
    if content["format"] == "eigentime-plan":
        return Plan.from_dict(content)
    return Schedule.from_dict(content, path)


def sampler_spec(sampler: Sampler) -> dict[str, Any]:
    """A registered sampler's name and settings as JSON."""
    settings = {key: _plain(key, value) for key, value in vars(sampler).items()}
    if sampler.name not in SAMPLERS or type(SAMPLERS[sampler.name]()) is not type(sampler):
        raise EigentimeError(f"The {sampler.name} sampler is not in SAMPLERS, so that no file could name it.")
    return {"name": sampler.name, "settings": settings}


def sampler_from_spec(spec: dict[str, Any]) -> Sampler:
    """Rebuild the sampler that `sampler_spec` described."""
    settings = {
        key: order_from_spec(value) if isinstance(value, dict) else value for key, value in spec["settings"].items()
    }
    if not settings:
        return make_sampler(spec["name"])
    make_sampler(spec["name"])  # refuses unknown ones with a sentence
    return SAMPLERS[spec["name"]](**settings)


def _plain(key: str, value: Any) -> Any:
    """A setting as JSON: orders that are no names by their description."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if key == "order":
        order: Order = make_order(value)
        order_from_spec(order.spec())  # an order that no file can hold is refused here
        return order.spec()
    raise EigentimeError(f"The setting {key} is a {type(value).__name__}, which no file can hold.")
