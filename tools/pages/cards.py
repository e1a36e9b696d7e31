"""One card for every strategy, sampler, order, kernel and noise curve: from registries and docstrings, with a picture.

A thing that is registered without advice stops the build, so that no card is missing.
"""

import inspect
import io
from collections.abc import Callable, Mapping
from typing import Any

import advice
import numpy as np
import torch
from docstrings import aligned
from matplotlib.figure import Figure
from results import load

import eigentime as et
from eigentime.orders import ORDERS, make_order
from eigentime.pictured import draw
from eigentime.process.kernels import KERNELS
from eigentime.process.noise import NOISES
from eigentime.samplers import SAMPLERS, make_sampler
from eigentime.schedules import Plan, Schedule
from eigentime.schedules.citations import CITATIONS
from eigentime.schedules.densities import DENSITIES
from eigentime.schedules.optimal import optimal_times
from eigentime.schedules.strategies import STRATEGIES, UNMEASURED

SIZE, DPI = (5.2, 2.1), 110
STEPS = 8
SIDE = 8
"""Tokens along each side of the grid that orders are shown on: its 64 cells are also the line's places."""
FORMULAS = {
    "eds": "ρ = max(Ḣ_na, 0), t_k = Φ⁻¹(1 - k/K), Φ(t) = ∫₀ᵗ ρ / ∫₀¹ ρ",
    "wds": "ρ = √(A·max(Ḣ_na, 0)), t_k = Φ⁻¹(1 - k/K), Φ(t) = ∫₀ᵗ ρ / ∫₀¹ ρ",
    "jys": "argmin over t_1 … t_{K-1} of a KL upper bound on the compounding error, by golden sections, level by level",
    "ods": "argmin over t_1 … t_{K-1} of Σ_k TC(x_{t_{k+1}} | x_{t_k}), by dynamic programming",
}
FORMULAS["eds-data"], FORMULAS["wds-data"] = (f"{FORMULAS[name]}; Ḣ_na in the data gauge" for name in ("eds", "wds"))
Drawn = Callable[[Any], None]


def pages() -> dict[str, str | bytes]:
    """Five pages and the pictures on them, by their places on the site."""
    made: dict[str, str | bytes] = {}
    clock = et.measure(et.load("countdown-exact"), budget=128)
    model = et.load("countdown-exact")
    made |= _page(
        "strategies",
        "Strategies",
        "When the network is asked. Pictures: eight steps on exact countdown (JYS: on the trained network).",
        {name: (_strategy_words(name), _schedule(name, clock, model)) for name in STRATEGIES},
        advice.STRATEGIES,
        {name: CITATIONS[name] for name in STRATEGIES},
    )
    made |= _page(
        "samplers",
        "Samplers",
        "What one step does. Pictures: which evaluation settled which token of one sequence of exact countdown, along "
        "eight steps of ODS where the sampler takes a schedule.",
        {name: (_sampler_words(name), _walk(name, model, et.schedule(clock, "ods", steps=STEPS))) for name in SAMPLERS},
        advice.SAMPLERS,
    )
    made |= _page(
        "orders",
        "Orders",
        f"Where tokens are revealed first. Pictures: {SIDE * SIDE} tokens, {STEPS} per evaluation; "
        f"grids {SIDE} × {SIDE}.",
        {name: (_docstring(ORDERS[name]), _order(name)) for name in ORDERS},
        advice.ORDERS,
    )
    made |= _page(
        "kernels",
        "Kernels",
        "The kind of noise. Pictures: one sequence of 48 tokens, from data (above) to noise (below).",
        {name: (_docstring(kind), _corruption(name)) for name, kind in KERNELS.items()},
        advice.KERNELS,
    )
    made |= _page(
        "noises",
        "Noise curves",
        "How fast tokens are corrupted. Pictures: α, the share of tokens left alone, against time.",
        {name: (_docstring(kind), _curve(kind())) for name, kind in NOISES.items()},
        advice.NOISES,
    )
    return made


def _page(
    place: str,
    title: str,
    about: str,
    things: Mapping[str, tuple[str, Drawn]],
    advised: Mapping[str, advice.Advice],
    cited: Mapping[str, str] | None = None,
) -> dict[str, str | bytes]:
    if set(things) != set(advised):
        raise SystemExit(f"tools/pages/advice.py and the registry of {place} differ: {set(things) ^ set(advised)}.")
    text, made = [f"# {title}", about], {}
    for name, (words, drawn) in things.items():
        told = advised[name]
        cite = (cited or {}).get(name) or told.cite
        made[f"cards/{place}-{name}.png"] = _picture(drawn)
        text += [
            f"## `{name}`",
            f"![{name}]({place}-{name}.png)",
            words,
            f"**Use it for:** {told.when}",
            f"**Cost:** {told.cost}",
            *([f"**Cite:** {cite}"] if cite else []),
        ]
    return {f"cards/{place}.md": "\n\n".join(text) + "\n", **made}


def _picture(drawn: Drawn) -> bytes:
    figure, buffer = Figure(figsize=SIZE, layout="constrained"), io.BytesIO()
    drawn(figure.subplots())
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def _docstring(thing: Any) -> str:
    return "\n\n".join(map(aligned, (inspect.getdoc(thing) or "").split("\n\n")))


def _strategy_words(name: str) -> str:
    if name in FORMULAS:
        return f"`{FORMULAS[name]}`"
    source = UNMEASURED.get(name) or DENSITIES.get(name) or optimal_times
    return _docstring(source)


def _schedule(name: str, clock: et.Clock, model: et.Model) -> Drawn:
    if name == "jys":
        rows = load("countdown/countdown.json")["network"]["rows"]
        row = next(row for row in rows if (row["strategy"], row["steps"]) == (name, STEPS))
        grid = Schedule.from_times(row["schedule"]["times"], model.process, name)
    elif name in UNMEASURED:
        grid = et.schedule(name, steps=STEPS, model=model)
    else:
        grid = et.schedule(clock, name, steps=STEPS)
    return lambda axes: draw(grid, axes)


def _sampler_words(name: str) -> str:
    made = make_sampler(name)
    covered = {
        "exact": "the cost of data under it is exact (`et.nll`)",
        "bound": "the cost of data under it is bounded (`et.nll`)",
        None: "no likelihood covers it",
    }[made.likelihood]
    law = "a certificate covers it (`et.path_error`)" if made.law else "no certificate along a schedule"
    return f"{_docstring(type(made))}\n\n`{made!r}` · {law}; {covered}."


def _walk(name: str, model: et.Model, grid: Schedule) -> Drawn:
    mask, seen = model.process.mask, []
    sampler = make_sampler(name)
    if name == "apart":
        sampler = et.Apart(dependence=np.exp(-np.arange(model.length) / 4))
    et.sample(
        model,
        grid if sampler.scheduled else None,
        1,
        sampler=sampler,
        callback=lambda now: seen.append(now.tokens[0] != mask) and None,
    )
    known = torch.stack(seen).numpy()
    steps, places = np.nonzero(np.diff(known, axis=0, prepend=False) & known)

    def drawn(axes: Any) -> None:
        axes.scatter(places, steps + 1, c=steps, cmap="viridis", s=5, marker="s", linewidths=0)
        axes.set(xlabel="place", ylabel="step", ylim=(len(known) + 0.6, 0.4), xlim=(-2, model.length + 1))
        axes.locator_params(axis="y", integer=True)

    return drawn


def _order(name: str) -> Drawn:
    near = np.exp(-np.abs(np.subtract.outer(np.arange(SIDE * SIDE), np.arange(SIDE * SIDE))) / 4)
    grid = name in ("halton", "sobol")
    order = make_order(name, (SIDE, SIDE) if grid else (SIDE * SIDE,), near if ORDERS[name].pairwise else near[0])
    plan = Plan((SIDE * SIDE // STEPS,) * STEPS, order, SIDE * SIDE)
    if not grid:
        return lambda axes: draw(plan, axes)
    steps = plan.step_of(1)[0].reshape(SIDE, SIDE).numpy() + 1

    def drawn(axes: Any) -> None:
        shown = axes.imshow(steps, cmap="viridis")
        axes.set(xticks=[], yticks=[])
        axes.figure.colorbar(shown, ax=axes, label="evaluation")

    return drawn


def _corruption(name: str) -> Drawn:
    size, length, times = 16, 48, np.linspace(0, 1, 13)
    ladder = np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)
    made_of: dict[str, Any] = {"rate-matrix": 8 * (ladder - np.diag(ladder.sum(1)))}
    kernel = KERNELS[name](made_of.get(name, size))
    process = et.Process(kernel, et.LogLinear())
    clean = (14 - torch.arange(length) % 15).expand(len(times), length)
    chance = torch.rand(2, 1, length, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    jump, replace = chance.expand(2, len(times), length)  # the same at all times, so that rows follow each other
    noisy = process.corrupt(clean, torch.tensor(times), jump, replace).numpy()

    def drawn(axes: Any) -> None:
        axes.imshow(noisy, aspect="auto", interpolation="nearest", cmap="viridis", extent=(0, length, 1, 0))
        axes.set(xlabel="place", ylabel="time")

    return drawn


def _curve(noise: et.Noise) -> Drawn:
    times = np.linspace(0, 1, 201)

    def drawn(axes: Any) -> None:
        axes.plot(times, noise.alpha(times).numpy())
        axes.set(xlim=(0, 1), ylim=(0, 1.03), xlabel="time (0 = data, 1 = noise)", ylabel="α")

    return drawn
