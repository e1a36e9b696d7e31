"""The page: gradio's controls around what a visit can do."""

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from eigentime.app.visit import BUDGETS, MOST_EVALUATIONS, MOST_SEED, STRATEGIES, Visit
from eigentime.errors import EigentimeError

FIRST = "countdown"
"""Chosen at the start: small, and its data come along."""
KEPT = 3600
"""Seconds that a visitor's work is kept after the last click."""
FONTS = ("system-ui", "sans-serif"), ("ui-monospace", "monospace")
STYLE = """
.film { width: 100%; height: 1840px; border: 0; border-radius: 12px; }
@media (max-width: 600px) { .film { height: 2860px; } }
#costs th, #costs td { border: 0; padding: 5px 22px 5px 0; text-align: left; }
#costs th, #costs td { border-bottom: 1px solid var(--border-color-primary); }
#costs table, #costs tr { border: 0; background: none; }
#costs caption { text-align: left; padding: 6px 0; }
footer { display: none !important; }
"""


def gradio() -> Any:
    """The package, told to report to nobody; a sentence where it is missing."""
    if find_spec("gradio") is None:
        raise EigentimeError("The app needs gradio: pip install 'eigentime[app]'.")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "0"
    import gradio as gr

    return gr


def layout(known: Mapping[str, str]) -> Any:
    """Choose, measure, move the slider, watch, take home."""
    gr = gradio()
    names = list(known)
    with gr.Blocks(title="eigentime", analytics_enabled=False, delete_cache=(600, KEPT)) as page:
        visit = gr.State(None, time_to_live=KEPT, delete_callback=_forget)
        gr.Markdown("# eigentime\nMeasure a model once, then see when and where its evaluations count.")
        with gr.Row():
            first = FIRST if FIRST in known else names[0]
            model = gr.Dropdown(names, value=first, label="Model", elem_id="model")
            budget = gr.Slider(*BUDGETS, value=128, step=16, label="Evaluations to measure with", elem_id="budget")
            measure = gr.Button("Measure", variant="primary", elem_id="measure")
        told = gr.Markdown("Nothing is measured yet.", elem_id="told")
        with gr.Column(visible=False) as results:
            count = gr.Slider(1, MOST_EVALUATIONS, value=8, step=1, label="Network evaluations", elem_id="count")
            advice = gr.Markdown(elem_id="advice")
            costs = gr.HTML(elem_id="costs")
            with gr.Row():
                left = gr.Dropdown(list(STRATEGIES), value="uniform", label="Left", elem_id="left")
                right = gr.Dropdown(list(STRATEGIES), value="ods", label="Right", elem_id="right")
                seed = gr.Number(0, precision=0, minimum=0, maximum=MOST_SEED, label="Seed", elem_id="seed")
                generate = gr.Button("Generate side by side", variant="primary", elem_id="generate")
            keep = gr.DownloadButton("Download the right one", elem_id="download")
            film = gr.HTML(elem_id="stage")

        def begin(name: str, spend: float, before: Visit | None, progress: Any = gr.Progress()) -> tuple[Any, ...]:  # noqa: B008
            found = Visit.measured(
                name, known, int(spend), 0, lambda done, total, note="": progress((done, total), desc=note)
            )
            _forget(before)
            at = min(8, found.most)
            best, sentence = found.recommendation(at)
            spent = f"Measured **{name}** with {found.clock.evaluations:,} evaluations of the network."
            menu = found.strategies()
            return (
                found,
                spent,
                gr.update(visible=True),
                gr.update(value=at, maximum=found.most),
                sentence,
                found.costs(at),
                gr.update(choices=menu, value="uniform"),
                gr.update(choices=menu, value=best),
                "",
                gr.update(value=str(found.saved(best, at)), label=f"Download {best}, {at} evaluations"),
            )

        def move(mine: Visit | None, at: int, wanted: str) -> tuple[Any, ...]:
            ours = _begun(mine)
            offer = gr.update(value=str(ours.saved(wanted, at)), label=f"Download {wanted}, {at} evaluations")
            return ours.recommendation(at)[1], ours.costs(at), offer

        def draw(mine: Visit | None, one: str, other: str, at: int, start: float) -> str:
            return _begun(mine).side_by_side(one, other, at, int(start))

        network: dict[str, Any] = {"concurrency_id": "network", "concurrency_limit": 1, "api_visibility": "private"}
        shown = [visit, told, results, count, advice, costs, left, right, film, keep]
        measure.click(_spoken(gr, begin), [model, budget, visit], shown, show_progress_on=told, **network)
        for control in (count, right):
            event = control.release if control is count else control.input
            event(_spoken(gr, move), [visit, count, right], [advice, costs, keep], **network)
        generate.click(_spoken(gr, draw), [visit, left, right, count, seed], film, **network)
    return page


def look(gr: Any) -> dict[str, Any]:
    """Fonts that every machine has, so that none is fetched, and a place for the film."""
    return {"theme": gr.themes.Base(font=FONTS[0], font_mono=FONTS[1]), "css": STYLE}


def _spoken(gr: Any, act: Callable[..., Any]) -> Callable[..., Any]:
    """Our sentences go to the visitor; any other error stays in the terminal."""
    from functools import wraps

    @wraps(act)
    def wrapped(*arguments: Any) -> Any:
        try:
            return act(*arguments)
        except EigentimeError as error:
            raise gr.Error(str(error), print_exception=False) from None

    return wrapped


def _begun(visit: Visit | None) -> Visit:
    if visit is None:
        raise EigentimeError("Measure a model first; what was measured more than an hour ago is forgotten.")
    return visit


def _forget(visit: Visit | None) -> None:
    if visit is not None:
        visit.close()
